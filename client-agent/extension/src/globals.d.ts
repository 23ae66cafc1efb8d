/** Set by the build. */
declare const BROWSER: "chromium" | "firefox";
