/** Quality switches by the picture's size, and the rate of what is decoded. */

export class QualityWatch {
  #width = 0;
  #height = 0;
  #switches = 0;

  get switches(): number {
    return this.#switches;
  }

  /** Lines of the picture; 0 before the first. */
  get height(): number {
    return this.#height;
  }

  /** True where the picture has changed its size. The first size is no switch, and no size says nothing. */
  observe(width: number, height: number): boolean {
    if (!(width > 0 && height > 0)) return false;
    const first = this.#height === 0;
    const changed = !first && (width !== this.#width || height !== this.#height);
    this.#width = width;
    this.#height = height;
    if (changed) this.#switches += 1;
    return changed;
  }
}

/** So much media makes one measurement: some key frames and some seconds of variable rate. */
const WINDOW_S = 6;
/** A larger step of the playhead was a jump. */
const JUMP_S = 5;
const MOST_KBPS = 10_000_000;

/** Encoded rate of what plays, from the bytes decoded per second of media. */
export class RateMeter {
  #lastBytes = Number.NaN;
  #lastPositionS = Number.NaN;
  #bytes = 0;
  #mediaS = 0;
  #kbps = 0;

  /** kbit/s, 0 while not known. */
  get kbps(): number {
    return this.#kbps;
  }

  observe(decodedBytes: number, positionS: number): void {
    const bytes = decodedBytes - this.#lastBytes;
    const stepS = positionS - this.#lastPositionS;
    this.#lastBytes = decodedBytes;
    this.#lastPositionS = positionS;
    if (!(bytes >= 0 && stepS >= 0)) return;
    if (stepS > JUMP_S) {
      this.restart();
      return;
    }
    this.#bytes += bytes;
    this.#mediaS += stepS;
    if (this.#mediaS < WINDOW_S) return;
    const kbps = Math.round((this.#bytes * 8) / 1000 / this.#mediaS);
    if (kbps > 0 && kbps <= MOST_KBPS) this.#kbps = kbps;
    this.restart();
  }

  /** What follows is of another quality, or another place. */
  restart(): void {
    this.#bytes = 0;
    this.#mediaS = 0;
  }
}
