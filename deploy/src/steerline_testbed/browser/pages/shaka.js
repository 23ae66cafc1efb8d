// Shaka Player as it comes. `goal` sets its buffer in seconds, `rule=off` keeps it at the top rate.
(async () => {
  const { choice, number, observe, describe, start } = window.steerlinePage;
  const rule = choice("rule", ["default", "on", "off"]);
  const goal = number("goal", null, 4, 600);
  const autoplay = choice("autoplay", ["1", "0"]) === "1";
  const video = document.getElementById("video");

  const player = new shaka.Player();
  const observer = observe(video, {
    rates: () => player.getVariantTracks().map(({ height, bandwidth }) => ({ height, kbps: bandwidth / 1000 })),
    segment: /\/seg-[^/]*\.m4s$/,
    autoplay,
  });
  describe({ player: "Shaka Player", rule, goal });
  window.player = player;

  const fail = (error) => observer.fail(`${error.code ?? ""} ${error.message ?? error}`.trim());
  player.addEventListener("error", ({ detail }) => {
    if (detail.severity === shaka.util.Error.Severity.CRITICAL) fail(detail);
  });
  try {
    await player.attach(video);
    if (goal !== null) player.configure("streaming.bufferingGoal", goal);
    if (rule === "off") player.configure("abr.enabled", false);
    await player.load(new URL("../video/manifest.mpd", location.href).href);
    if (rule === "off") {
      const [top] = player.getVariantTracks().sort((one, other) => other.bandwidth - one.bandwidth);
      player.selectVariantTrack(top, true);
    }
    if (autoplay) start(video);
  } catch (error) {
    fail(error);
  }
})();
