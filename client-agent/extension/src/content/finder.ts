/**
 * Finds the places where media can be: the document and every shadow root in it. A root tells of its media by
 * events; a shadow root made late tells nobody, so the tree is walked again from time to time, within bounds.
 */

import { MOST_ELEMENTS } from "../core/roster";

type Root = Document | ShadowRoot;

/** Elements looked at in one walk, and roots that are known at most. */
const MOST_WALKED = 20_000;
const MOST_ROOTS = 500;

/** Extensions may open closed roots, each browser in its own way. */
function shadowOf(element: Element): ShadowRoot | null {
  if (element.shadowRoot !== null) return element.shadowRoot;
  if (!(element instanceof HTMLElement)) return null;
  const own = (element as HTMLElement & { openOrClosedShadowRoot?: ShadowRoot | null }).openOrClosedShadowRoot;
  if (own !== undefined) return own;
  return globalThis.chrome?.dom?.openOrClosedShadowRoot(element) ?? null;
}

export class Finder {
  readonly #known = new WeakSet<Root>();
  #roots: WeakRef<Root>[] = [];
  readonly #onRoot: (root: Root) => void;

  /** `onRoot` hears of each root once. */
  constructor(onRoot: (root: Root) => void) {
    this.#onRoot = onRoot;
  }

  /** Walks the document for new shadow roots. */
  walk(): void {
    let left = MOST_WALKED;
    const pending: Root[] = [document];
    for (let root = pending.pop(); root !== undefined && left > 0; root = pending.pop()) {
      this.#meet(root);
      const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT);
      while (left > 0 && walker.nextNode() !== null) {
        left -= 1;
        const shadow = shadowOf(walker.currentNode as Element);
        if (shadow !== null) pending.push(shadow);
      }
    }
  }

  /** Media elements in all known roots. */
  elements(): HTMLMediaElement[] {
    const found: HTMLMediaElement[] = [];
    this.#roots = this.#roots.filter((ref) => ref.deref() !== undefined);
    for (const ref of this.#roots) {
      const here = ref.deref()?.querySelectorAll<HTMLMediaElement>("video, audio") ?? [];
      found.push(...Array.from(here).slice(0, MOST_ELEMENTS));
    }
    return found;
  }

  #meet(root: Root): void {
    if (this.#known.has(root) || this.#roots.length >= MOST_ROOTS) return;
    this.#known.add(root);
    this.#roots.push(new WeakRef(root));
    this.#onRoot(root);
  }
}
