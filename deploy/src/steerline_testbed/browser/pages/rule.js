// The stated rate rule, as client-agent/agent/src/player/rule.rs has it: buffer-based, with hysteresis.
//
// * It starts at the top rate.
// * It steps down to the next lower rate when less than `downBelow` (8 s) is buffered, once playback has begun.
//   Not in the initial fill: that lasts until `downBelow` is first reached, or the buffer is seen to shrink,
//   or playback stalls.
// * It steps up to the next higher rate when at least `upAt` (25 s) is buffered.
// * One step per segment; a segment under way is never given up.
//
// Where the goal is small, the thresholds are no more than a quarter and 0.6 of it.
(() => {
  class Chooser {
    #filling = 0;

    /** Rates are 0 (lowest) to `top`. `goal` in seconds; `on` false: always the top rate. */
    constructor({ on, goal, top }) {
      this.on = on;
      this.top = top;
      this.current = top;
      this.downBelow = Math.min(8, goal * 0.25);
      this.upAt = Math.min(25, goal * 0.6);
    }

    /** The rate of the next segment. `buffered` in seconds. */
    choose({ buffered, playing, stalled }) {
      if (!this.on) return this.top;
      if (this.#filling !== null) {
        const shrinks = playing && buffered < this.#filling;
        const over = buffered >= this.downBelow || shrinks || stalled;
        this.#filling = over ? null : buffered;
      }
      if (buffered >= this.upAt && this.current < this.top) {
        this.current += 1;
      } else if (buffered < this.downBelow && this.#filling === null && this.current > 0) {
        this.current -= 1;
      }
      return this.current;
    }
  }

  /** Starts, and goes on after a stall, when this many seconds are buffered: as the agent's player does. */
  const START_AT_S = 2.5;

  /** Less than a frame: nothing is left to show. */
  const EMPTY_S = 0.03;
  /** Tracks differ by some frames at the film's end. */
  const END_TOLERANCE_S = 0.3;

  /**
   * Chromium shows a frozen picture for up to three seconds while there is sound, and every browser goes on
   * as soon as one frame is there. This holds the playhead from the moment the buffer is empty until enough
   * is buffered, by the playback rate, so that nobody takes it for the viewer's own pause.
   */
  function holdStalls(video, observer) {
    const look = () => {
      const { buffered } = observer;
      const whole = video.duration - video.currentTime - buffered < END_TOLERANCE_S;
      if (video.playbackRate === 0) {
        if (buffered >= START_AT_S || whole || video.seeking) video.playbackRate = 1;
      } else if (observer.stalled || (observer.playing && buffered < EMPTY_S)) {
        if (buffered < START_AT_S && !whole && !video.seeking) video.playbackRate = 0;
      }
    };
    for (const name of ["waiting", "timeupdate", "progress", "seeking", "canplay"]) {
      video.addEventListener(name, look);
    }
    return look;
  }

  window.steerlineRule = { Chooser, holdStalls, START_AT_S };
})();
