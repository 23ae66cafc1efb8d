// dash.js with the stated rule and the agent's goal, so that their runs can be compared; `rule=default`
// leaves everything to dash.js.
(() => {
  const { choice, number, observe } = window.steerlinePage;
  const { Chooser, holdStalls, START_AT_S } = window.steerlineRule;
  // How often dash.js asks itself whether the next segment may be fetched.
  const ASK_EVERY_MS = 100;
  // The agent tries again for as long as a viewer would wait; dash.js' own three attempts are over in a second.
  const ATTEMPTS = 120;

  const rule = choice("rule", ["on", "off", "default"]);
  const goal = number("goal", 55, 4, 600);
  const autoplay = choice("autoplay", ["1", "0"]) === "1";
  const video = document.getElementById("video");
  const player = dashjs.MediaPlayer().create();
  let rates = [];

  const observer = observe(video, { rates: () => rates, segment: /\/seg-[^/]*\.m4s$/, autoplay });
  const thresholds = new Chooser({ on: true, goal, top: 0 });
  const words = {
    on: `Buffer-based rate rule: down below ${thresholds.downBelow} s, up from ${thresholds.upAt} s, goal ${goal} s.`,
    off: `Always the top rate, goal ${goal} s.`,
    default: "dash.js' own rules and goals.",
  };
  document.getElementById("what").textContent = words[rule];

  player.initialize();
  if (rule !== "default") stateTheRule();
  player.on("error", ({ error }) => observer.fail(error.message ?? error));
  player.on("streamInitialized", () => {
    const sound_kbps = player.getRepresentationsByType("audio")[0]?.bandwidth / 1000 || 0;
    rates = player.getRepresentationsByType("video").map((one) => ({
      height: one.height,
      kbps: one.bandwidth / 1000 + sound_kbps,
    }));
  });
  player.attachView(video);
  player.setAutoPlay(autoplay);
  player.attachSource(new URL("../video/manifest.mpd", location.href).href);
  window.player = player;

  function stateTheRule() {
    const off = { active: false };
    player.updateSettings({
      streaming: {
        buffer: {
          bufferTimeDefault: goal,
          bufferTimeAtTopQuality: goal,
          bufferTimeAtTopQualityLongForm: goal,
          initialBufferLevel: START_AT_S,
          // What is buffered is shown; nothing is fetched a second time in another rate.
          fastSwitchEnabled: false,
        },
        scheduling: { defaultTimeout: ASK_EVERY_MS },
        // A slow segment is waited for.
        fragmentRequestTimeout: 0,
        retryAttempts: { MediaSegment: ATTEMPTS, InitializationSegment: ATTEMPTS },
        lastBitrateCachingInfo: { enabled: false },
        applyServiceDescription: false,
        abr: {
          initialBitrate: { video: 1_000_000 },
          rules: {
            throughputRule: off,
            bolaRule: off,
            insufficientBufferRule: off,
            switchHistoryRule: off,
            droppedFramesRule: off,
            abandonRequestsRule: off,
          },
        },
      },
    });
    // dash.js tells this ten times a second.
    player.on("bufferLevelUpdated", holdStalls(video, observer));
    StatedRule.__dashjs_factory_name = "StatedRule";
    player.addABRCustomRule("qualitySwitchRules", "StatedRule", dashjs.FactoryMaker.getClassFactory(StatedRule));
  }

  /** dash.js makes one of these, and asks it before each segment of each track. */
  function StatedRule() {
    const SwitchRequest = dashjs.FactoryMaker.getClassFactoryByName("SwitchRequest");
    const context = this.context;
    let chooser = null;
    return {
      getSwitchRequest(asked) {
        const request = SwitchRequest(context).create();
        if (asked.getMediaType() !== "video") return request;
        const all = asked.getAbrController().getPossibleVoRepresentations(asked.getMediaInfo(), true);
        const ladder = [...all].sort((one, other) => one.bandwidth - other.bandwidth);
        chooser ??= new Chooser({ on: rule === "on", goal, top: ladder.length - 1 });
        // Of the picture alone: dash.js lets the sound, a twentieth of the bytes, follow the picture, and a
        // fill that waits for it for a moment does not shrink.
        const buffered = Math.max(observer.buffered, player.getBufferLength("video") || 0);
        const { playing, stalled } = observer;
        request.representation = ladder[chooser.choose({ buffered, playing, stalled })];
        request.reason = { buffered };
        request.rule = "StatedRule";
        return request;
      },
      reset() {
        chooser = null;
      },
    };
  }
})();
