// Puts the sections on the page, in order; some are filled when their data are unpacked.

function addSection(id, title, children) {
  const section = make(
    "section",
    { id, "aria-labelledby": `${id}-title` },
    make("h2", { id: `${id}-title` }, title),
    ...children.filter((child) => child !== null),
  );
  document.getElementById("main").append(section);
  document.getElementById("nav").append(make("a", { href: `#${id}` }, title));
  return section;
}

/** A section that waits for its blob: drawn when it comes near the window. */
function addLater(id, title, fill) {
  const host = make("div", { class: "waiting" }, "…");
  const section = addSection(id, title, [host]);
  new IntersectionObserver(
    (entries, observer) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      fill(host);
    },
    { rootMargin: "600px" },
  ).observe(section);
}

async function build() {
  startTooltip();
  let browser = null;
  addSection("summary", "Summary", showSummary());
  if (data.comparison)
    addSection("comparison", "Comparison", showComparison((kind) => browser.showOnly(kind)));
  if (data.history) addSection("learning", "Learning curves", showCurves());
  if (data.confusion)
    addSection(
      "confusion",
      "Confusion matrix",
      showConfusion((truth, predicted) => browser.showPair(truth, predicted)),
    );
  if (data.segments) addSection("segments", "Segments", showSegments());
  if (data.calibration) addSection("calibration", "Calibration", showCalibration());
  if (data.browser) {
    const host = make("div", { class: "browser" });
    addSection("sequences", "Sequences", [host]);
    browser = new Browser(host);
  }
  if (data.pairs) addSection("pairs", "Transitions", showPairs());
  if (data.patterns) addSection("patterns", "Label patterns", showPatterns());
  if (data.features) addSection("features", "Features", showFeatures());
  if (data.trees) addLater("trees", "Trees", showTrees);
  document.getElementById("main").append(make("footer", {}, `Made with hedgerow ${data.version}.`));
  if (browser) await browser.start();
  performance.mark("ready");
  document.documentElement.dataset.ready = "";
}

build();
