// What really happened on this page, noted by the page itself and by nothing else: the measure that the
// extension's reports are held against. `steerline.drain()` gives the records since the last call.
(() => {
  const SAMPLE_MS = 500;
  // A film whose page nobody asks must not fill the memory: about two hours of records.
  const MOST_RECORDS = 20_000;
  // Ranges begin some frames late, and a playhead may stand just before them.
  const RANGE_TOLERANCE_S = 0.1;
  // At the film's very end browsers say `waiting` before they say `ended`.
  const END_TOLERANCE_S = 0.3;
  const FUTURE_DATA = 3;

  const seconds = (value) => Math.round(value * 1000) / 1000;

  /** Media ahead of the playhead in the range that holds it, in seconds. */
  function bufferedAhead(video) {
    const { buffered, currentTime } = video;
    for (let i = 0; i < buffered.length; i += 1) {
      if (buffered.start(i) - RANGE_TOLERANCE_S <= currentTime && currentTime < buffered.end(i)) {
        return buffered.end(i) - currentTime;
      }
    }
    return 0;
  }

  class Observer {
    #records = [];
    #state = "STARTING";
    #startup = null;
    #wantedAt = 0;
    #stallCount = 0;
    #stalled = 0;
    #stalledSince = null;
    #height = 0;
    #position = 0;
    #failure = null;
    #protocols = new Map();

    /**
     * `rates()` gives the film's qualities as [{height, kbps}], sound included; `segment` tells a media segment's address;
     * `autoplay` is whether the page begins by itself.
     */
    constructor(video, { rates, segment, autoplay }) {
      this.video = video;
      this.rates = rates;
      this.autoplay = autoplay;
      for (const name of ["play", "playing", "pause", "waiting", "seeking", "seeked", "ended", "error", "ratechange", "timeupdate"]) {
        video.addEventListener(name, () => this.#look(name));
      }
      video.addEventListener("resize", () => this.#quality());
      this.#watchDownloads(segment);
      this.#every(SAMPLE_MS, () => {
        this.#look("sample");
        this.#note("sample");
      });
      if (!autoplay) this.#enter("PAUSED");
    }

    /** Seconds of media ahead of the playhead. */
    get buffered() {
      return bufferedAhead(this.video);
    }

    get playing() {
      return this.#state === "PLAYING";
    }

    get stalled() {
      return this.#state === "REBUFFERING";
    }

    get started() {
      return this.#startup !== null;
    }

    /** The records since the last call. */
    drain() {
      return this.#records.splice(0);
    }

    /** What would be recorded now. */
    now() {
      return this.#record("sample");
    }

    /** Downloads so far by protocol, as the browser tells it: {"http/1.1": 12}. */
    protocols() {
      return Object.fromEntries(this.#protocols);
    }

    /** The player cannot go on. */
    fail(reason) {
      if (this.#failure === null) {
        this.#failure = String(reason);
        this.#enter("FATAL_ERROR");
      }
    }

    // A worker's clock runs on in a tab that nobody looks at, where the page's own is slowed down.
    #every(period_ms, what) {
      const url = URL.createObjectURL(new Blob([`setInterval(() => postMessage(0), ${period_ms})`]));
      const worker = new Worker(url);
      worker.onmessage = what;
      this.clock = worker;
    }

    #watchDownloads(segment) {
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) {
          const protocol = entry.nextHopProtocol;
          // Without one it came from no server: from a cache, or from the address itself.
          if (protocol) this.#protocols.set(protocol, (this.#protocols.get(protocol) ?? 0) + 1);
          if (segment.test(entry.name)) {
            const more = { bytes: entry.encodedBodySize, duration_s: seconds(entry.duration / 1000), protocol };
            this.#push({ ...this.#record("segment"), ...more });
          }
        }
      }).observe({ type: "resource", buffered: true });
    }

    #look(name) {
      const { video } = this;
      if (video.error) this.fail(`${video.error.code} ${video.error.message}`);
      if (this.#state === "FATAL_ERROR") return;
      if (name === "play" && !this.started && !this.autoplay) this.#wantedAt = performance.now();
      const state = this.#judge(name);
      if (state !== this.#state) this.#enter(state);
      this.#position = video.currentTime;
    }

    #judge(name) {
      const { video } = this;
      const moves = video.currentTime > this.#position;
      const canPlay = video.readyState >= FUTURE_DATA && video.playbackRate > 0;
      if (video.ended) return "ENDED";
      if (!this.started) {
        if (!video.paused && canPlay && (name === "playing" || moves)) return "PLAYING";
        return video.paused && !this.autoplay ? "PAUSED" : "STARTING";
      }
      if (video.paused) return "PAUSED";
      if (video.seeking) return "SEEKING";
      if (video.duration - video.currentTime < END_TOLERANCE_S) return this.#state;
      if (!canPlay) return this.#state === "SEEKING" ? "SEEKING" : "REBUFFERING";
      const goesOn = name === "playing" || name === "ratechange" || moves;
      return this.playing || goesOn ? "PLAYING" : this.#state;
    }

    #enter(state) {
      const now = performance.now();
      if (this.#stalledSince !== null) {
        this.#stalled += now - this.#stalledSince;
        this.#stalledSince = null;
      }
      if (state === "REBUFFERING") {
        this.#stallCount += 1;
        this.#stalledSince = now;
      }
      if (state === "PLAYING" && this.#startup === null) this.#startup = now - this.#wantedAt;
      this.#state = state;
      this.#note("state");
    }

    #quality() {
      const height = this.video.videoHeight;
      if (height === this.#height) return;
      this.#height = height;
      this.#note("quality");
    }

    #note(kind) {
      this.#push(this.#record(kind));
    }

    #push(record) {
      if (this.#records.length >= MOST_RECORDS) this.#records.shift();
      this.#records.push(record);
    }

    #record(kind) {
      const { video } = this;
      const now = performance.now();
      const height = this.started ? video.videoHeight || null : null;
      const rate = this.rates().find((one) => one.height === height);
      const quality = video.getVideoPlaybackQuality();
      const going = this.#stalledSince === null ? 0 : now - this.#stalledSince;
      const record = {
        time_s: seconds((performance.timeOrigin + now) / 1000),
        kind,
        player_state: this.#state,
        buffer_s: seconds(bufferedAhead(video)),
        position_s: seconds(video.currentTime),
        height,
        bitrate_kbps: rate ? Math.ceil(rate.kbps) : null,
        stall_count: this.#stallCount,
        stall_s: seconds((this.#stalled + going) / 1000),
        startup_s: this.#startup === null ? null : seconds(this.#startup / 1000),
        dropped_frames: quality.droppedVideoFrames,
        shown_frames: quality.totalVideoFrames - quality.droppedVideoFrames,
      };
      return this.#failure === null ? record : { ...record, failure: this.#failure };
    }
  }

  const options = new URLSearchParams(location.search);

  /** An option of the address that must be one of these. A wrong one is shown on the page. */
  function choice(name, allowed) {
    const value = options.get(name) ?? allowed[0];
    if (!allowed.includes(value)) refuse(`${name} is "${value}"; allowed: ${allowed.join(", ")}`);
    return value;
  }

  /** An option of the address that must be a number within these bounds. */
  function number(name, otherwise, least, most) {
    const text = options.get(name);
    if (text === null) return otherwise;
    const value = Number(text);
    if (text === "" || !(value >= least && value <= most)) {
      refuse(`${name} is "${text}"; allowed: ${least} to ${most}`);
    }
    return value;
  }

  function refuse(message) {
    window.showMessage(message);
    throw new RangeError(message);
  }

  function observe(video, what) {
    const observer = new Observer(video, what);
    window.steerline = observer;
    window.showPage(observer);
    return observer;
  }

  /** Says below the title how a player with rules of its own was set. */
  function describe({ player, rule, goal }) {
    const rate = rule === "off" ? "always the top rate" : `${player}'s own rate rule`;
    const ahead = goal === null ? "its own buffer goal" : `a buffer goal of ${goal} s`;
    document.getElementById("what").textContent = `With ${rate} and ${ahead}.`;
  }

  function start(video) {
    video.play().catch((error) => window.showMessage(`It does not start by itself: ${error.message}`));
  }

  window.steerlinePage = { choice, number, observe, describe, start };
})();
