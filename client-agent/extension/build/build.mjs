// Builds dist/chromium and dist/firefox. `--also-allow PATTERN` (for tests) grants a site at installation, where no
// person can answer the browser's question.
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";
import { manifests } from "./manifest.mjs";

const home = join(dirname(fileURLToPath(import.meta.url)), "..");
const { values } = parseArgs({
  options: { out: { type: "string", default: join(home, "dist") }, "also-allow": { type: "string", multiple: true } },
});
const { version } = JSON.parse(await readFile(join(home, "package.json"), "utf8"));

for (const [browser, manifest] of Object.entries(manifests)) {
  const out = join(values.out, browser);
  await rm(out, { recursive: true, force: true });
  await mkdir(out, { recursive: true });
  await build({
    entryPoints: {
      background: join(home, "src/background/index.ts"),
      content: join(home, "src/content/index.ts"),
      popup: join(home, "src/pages/popup.ts"),
      options: join(home, "src/pages/options.ts"),
    },
    outdir: out,
    bundle: true,
    format: "iife",
    target: browser === "firefox" ? "firefox142" : "chrome120",
    define: { BROWSER: JSON.stringify(browser) },
    // Reviewers read what runs.
    minify: false,
    legalComments: "none",
    logLevel: "warning",
  });
  await cp(join(home, "static"), out, { recursive: true });
  const allow = values["also-allow"];
  const whole = allow === undefined ? manifest(version) : { ...manifest(version), host_permissions: allow };
  await writeFile(join(out, "manifest.json"), `${JSON.stringify(whole, null, 2)}\n`);
  console.log(`built ${out}`);
}
