// The manifest of each browser, from one description.

/** Gives the Chromium build the same id on every machine, so that the host's manifest can name it. Public key only. */
const KEY =
  "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAlWRuwUVsexvgZF2AAIlGHoo6fm6EaI7mVzFXf6ElVAAEOR8VOM2R/MgXMJ/Ki6IvJchEhS1/df5FFuxHvbZR7t1jgbEFWu3p9bZGk5pmlyHNcqmTBACn2SCn512BKuwfm0Pxsxc+kDwG5h0I8h0wZMD5uJdUcpF70/Bm0MjiBWxZNOVB1KyhnLVosC33nOew7NM55JU5R9dAkWMDr+S6Cepux1lE6gxgvAogsLuv3aJ8JqgOTpljtMYCSX3bsHKabNO3OvLpiSHCHc7K//W5fI78v7nwRRRxy+Zq1xmfKyn8PzH30HfyFVP2T92DFN2mxw6DxP2syXoMX8UcPcNZXwIDAQAB";

const icons = Object.fromEntries([16, 32, 48, 128].map((size) => [size, `icon-${size}.png`]));

/** @param {string} version */
const common = (version) => ({
  manifest_version: 3,
  name: "Steerline",
  version,
  description:
    "Tells your provider's network how many seconds your video has in store, so that it can act before it freezes.",
  icons,
  action: { default_popup: "popup.html", default_icon: icons, default_title: "Steerline" },
  options_ui: { page: "options.html", open_in_tab: true },
  permissions: ["activeTab", "nativeMessaging", "scripting", "storage", "webRequest"],
  // Nothing without the viewer's word, site by site.
  optional_host_permissions: ["*://*/*"],
});

/** @type {Record<string, (version: string) => object>} */
export const manifests = {
  chromium: (version) => ({
    ...common(version),
    key: KEY,
    minimum_chrome_version: "120",
    background: { service_worker: "background.js" },
  }),
  firefox: (version) => ({
    ...common(version),
    background: { scripts: ["background.js"] },
    browser_specific_settings: {
      gecko: {
        id: "extension@steerline",
        strict_min_version: "142.0",
        // What leaves for the program on this computer counts as sent: servers' addresses tell which service is
        // used (browsing activity), and states tell when the viewer plays, pauses and seeks (website activity).
        data_collection_permissions: { required: ["browsingActivity", "websiteActivity"] },
      },
    },
  }),
};
