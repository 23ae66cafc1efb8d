// A plain file in a video element, MP4 or WebM as the page is called.
(() => {
  const { choice, observe, start } = window.steerlinePage;
  const autoplay = choice("autoplay", ["1", "0"]) === "1";
  const video = document.getElementById("video");
  const name = `film.${location.pathname.split("/").pop().replace(".html", "")}`;
  const address = new URL(`../video/${name}`, location.href).href;
  let rates = [];

  const observer = observe(video, { rates: () => rates, segment: /\/film\.(mp4|webm)$/, autoplay });

  // Its one rate is its size over its length.
  video.addEventListener("loadedmetadata", async () => {
    const { headers } = await fetch(address, { method: "HEAD", cache: "no-store" });
    const kbps = (Number(headers.get("content-length")) * 8) / video.duration / 1000;
    rates = [{ height: video.videoHeight, kbps }];
  });
  video.src = address;
  if (autoplay) start(video);
  window.player = video;
})();
