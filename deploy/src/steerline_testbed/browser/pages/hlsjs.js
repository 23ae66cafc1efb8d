// hls.js as it comes. `goal` sets its buffer in seconds, `rule=off` keeps it at the top rate.
(() => {
  const { choice, number, observe, describe, start } = window.steerlinePage;
  const rule = choice("rule", ["default", "on", "off"]);
  const goal = number("goal", null, 4, 600);
  const autoplay = choice("autoplay", ["1", "0"]) === "1";
  const video = document.getElementById("video");

  const settings = goal === null ? {} : { maxBufferLength: goal, maxMaxBufferLength: goal };
  const hls = new Hls(settings);
  const observer = observe(video, {
    rates: () => hls.levels.map(({ height, averageBitrate }) => ({ height, kbps: averageBitrate / 1000 })),
    segment: /\/seg-[^/]*\.m4s$/,
    autoplay,
  });
  describe({ player: "hls.js", rule, goal });

  hls.on(Hls.Events.ERROR, (_, data) => {
    if (data.fatal) observer.fail(`${data.type}: ${data.details}`);
  });
  hls.on(Hls.Events.MANIFEST_PARSED, () => {
    if (rule === "off") hls.currentLevel = hls.levels.length - 1;
    if (autoplay) start(video);
  });
  hls.loadSource(new URL("../video/master.m3u8", location.href).href);
  hls.attachMedia(video);
  window.player = hls;
})();
