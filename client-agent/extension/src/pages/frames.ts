/** Players that other sites have put into a page: their frames are not ours to read before the viewer allows them. */

import { framesOf } from "../core/sites";

/** Runs in the page, once, when the viewer opens the popup. It is sent there as text: it uses nothing from outside. */
function look(): { src: string; allow: string; width: number; height: number }[] {
  return Array.from(document.querySelectorAll("iframe"))
    .slice(0, 200)
    .map((frame) => ({
      src: frame.src,
      allow: `${frame.allow} ${frame.allowFullscreen ? "fullscreen" : ""}`,
      width: frame.clientWidth,
      height: frame.clientHeight,
    }));
}

/** Host names of frames that look like players; none where the page may not be asked. */
export async function embedded(tab: number | undefined): Promise<string[]> {
  if (tab === undefined) return [];
  try {
    const [found] = await chrome.scripting.executeScript({ target: { tabId: tab }, func: look });
    return framesOf(found?.result ?? []);
  } catch {
    return [];
  }
}
