// The bar and the line below the video: what the observer knows, for the people in front of the screen.
(() => {
  const REFRESH_MS = 500;
  const FULL_S = 60;
  const LINE = [
    ["state", "Film"],
    ["position", "At"],
    ["buffer", "Buffered"],
    ["quality", "Quality"],
    ["stalls", "Stalls"],
    ["startup", "Began after"],
    ["protocol", "Protocol"],
  ];
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

  function build(video) {
    const line = LINE.map(([id, title]) => `<div><dt>${title}</dt><dd id="${id}"></dd></div>`).join("");
    video.insertAdjacentHTML(
      "afterend",
      `<div id="bar" title="buffered playtime"><div id="level"></div></div>
       <div class="scale"><span>0 s</span><span>buffered playtime</span><span>${FULL_S} s</span></div>
       <dl>${line}</dl><p id="message"></p>`,
    );
  }

  /** Shows what goes wrong before there is a player. */
  window.showMessage = (message) => {
    if (!document.getElementById("message")) build(document.querySelector("video"));
    tell("message", message);
  };

  window.showPage = (observer) => {
    build(observer.video);
    const show = () => {
      const now = observer.now();
      document.body.dataset.state = now.player_state;
      tell("state", WORDS[now.player_state]);
      tell("position", clock(now.position_s));
      tell("buffer", `${now.buffer_s.toFixed(1)} s`);
      const rate = now.bitrate_kbps === null ? "" : `, ${(now.bitrate_kbps / 1000).toFixed(2)} Mbit/s`;
      tell("quality", now.height === null ? "–" : `${now.height}p${rate}`);
      tell("stalls", now.stall_count === 0 ? "none" : `${now.stall_count}, ${now.stall_s.toFixed(1)} s`);
      tell("startup", now.startup_s === null ? "–" : `${now.startup_s.toFixed(1)} s`);
      tell("protocol", Object.keys(observer.protocols()).join(", ") || "–");
      document.getElementById("level").style.width = `${Math.min(100, (100 * now.buffer_s) / FULL_S)}%`;
      if (now.failure) tell("message", `The player gave up: ${now.failure}`);
    };
    show();
    setInterval(show, REFRESH_MS);
  };
})();
