// The line and the bar below the video: what the recorder knows, for the people in front of the screen.
(() => {
  const REFRESH_MS = 500;
  const WORDS = {
    STARTING: "starting",
    PLAYING: "playing",
    REBUFFERING: "frozen, waiting for data",
    SEEKING: "seeking",
    PAUSED: "paused",
    ENDED: "over",
    FATAL_ERROR: "failed",
  };

  const clock = (value) => `${Math.floor(value / 60)}:${String(Math.floor(value % 60)).padStart(2, "0")}`;
  const tell = (id, text) => {
    document.getElementById(id).textContent = text;
  };

  window.showPage = (observer) => {
    const full_s = Number(document.getElementById("bar").dataset.full);
    const show = () => {
      const now = observer.now();
      document.body.dataset.state = now.player_state;
      tell("state", WORDS[now.player_state]);
      tell("position", clock(now.position_s));
      tell("buffer", `${now.buffer_s.toFixed(1)} s`);
      const rate = now.bitrate_kbps === null ? "" : ` at ${(now.bitrate_kbps / 1000).toFixed(2)} Mbit/s`;
      tell("quality", now.height === null ? "–" : `${now.height}p${rate}`);
      tell("stalls", now.stall_count === 0 ? "none" : `${now.stall_count}, together ${now.stall_s.toFixed(1)} s`);
      tell("startup", now.startup_s === null ? "–" : `${now.startup_s.toFixed(1)} s`);
      tell("protocol", Object.keys(observer.protocols()).join(", ") || "–");
      document.getElementById("level").style.width = `${Math.min(100, (100 * now.buffer_s) / full_s)}%`;
      if (now.failure) tell("message", `The player gave up: ${now.failure}`);
    };
    show();
    setInterval(show, REFRESH_MS);
  };
})();
