/** The sites that the viewer has allowed: this script runs in their frames, and in no others. */

const SCRIPT_ID = "watch";
const FILE = "content.js";

export async function allowed(): Promise<string[]> {
  const { origins } = await chrome.permissions.getAll();
  return (origins ?? []).sort();
}

let last: Promise<void> = Promise.resolve();

/** Registers the content script for what is allowed now. One after the other: registrations do not mix. */
export function register(): Promise<void> {
  last = last.then(registerNow, registerNow);
  return last;
}

async function registerNow(): Promise<void> {
  const matches = await allowed();
  const registered = await chrome.scripting.getRegisteredContentScripts({ ids: [SCRIPT_ID] });
  if (matches.length === 0) {
    if (registered.length > 0) await chrome.scripting.unregisterContentScripts({ ids: [SCRIPT_ID] });
    return;
  }
  const script: chrome.scripting.RegisteredContentScript = {
    id: SCRIPT_ID,
    js: [FILE],
    matches,
    allFrames: true,
    matchOriginAsFallback: true,
    runAt: "document_start",
    persistAcrossSessions: true,
  };
  if (registered.length > 0) await chrome.scripting.updateContentScripts([script]);
  else await chrome.scripting.registerContentScripts([script]);
}

/** Tabs that were open before: the script is put into them, too. */
export async function inject(origins: readonly string[]): Promise<void> {
  const tabs = await chrome.tabs.query({ url: [...origins] });
  await Promise.allSettled(
    tabs.map(({ id }) =>
      id === undefined
        ? Promise.resolve()
        : chrome.scripting.executeScript({ target: { tabId: id, allFrames: true }, files: [FILE] }),
    ),
  );
}
