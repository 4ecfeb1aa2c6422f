// A tree, drawn from left to right, with the yes branch above the no branch.

// Pixels: between questions and answers, of a row and of a box in it, and of a letter.
const TREE = { gap: 36, row: 26, high: 22, letter: 6.3 };
const LONGEST_QUESTION = 30;

async function showTrees(host) {
  const buffer = await openBlob("trees");
  const places = data.trees;
  const forest = { questions: valueIn(buffer, places.questions) };
  for (const name of [
    "tree_round",
    "tree_label",
    "begins",
    "question",
    "left",
    "right",
    "missing",
    "outside",
    "value",
    "gain",
    "weight",
  ]) {
    forest[name] = arrayIn(buffer, places[name]);
  }
  const picture = make("div", {
    class: "scroll tree",
    tabindex: 0,
    role: "group",
    "aria-label": "Tree",
  });
  let [place, code, shown] = [0, 0, 0];
  const largest = forest.value.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-12);
  const update = () => {
    const tree = forest.tree_round.findIndex(
      (round, i) => round === places.rounds[place] && forest.tree_label[i] === code,
    );
    shown = tree;
    const { image, root } = drawTree(forest, tree, largest);
    picture.replaceChildren(image);
    picture.scrollTo(0, root.y - picture.clientHeight / 2);
  };
  const rounds = chooser(
    "Round",
    places.rounds.map((round, i) => [i, count(round)]),
    (value) => ((place = Number(value)), update()),
  );
  const names = chooser(
    "Label",
    data.model.labels.map((_, i) => [i, labelText(i)]),
    (value) => ((code = Number(value)), update()),
  );
  host.replaceChildren(
    make(
      "p",
      { class: "quiet" },
      "Leaves show what the tree adds to the score of the label: blue is positive, orange negative. " +
        "A dotted branch is where missing values go.",
    ),
    make("div", { class: "tools" }, rounds.field, names.field),
    exportable("tree", picture, () => treeTable(forest, shown)),
  );
  update();
}

/** Tree number `tree` of those in the page, as a picture. */
function drawTree(forest, tree, largest) {
  const begin = forest.begins[tree];
  const questions = forest.question.subarray(begin, forest.begins[tree + 1]);
  const longest = Math.max(...questions.map((question) => forest.questions[question].length), 9);
  const box = Math.ceil(Math.min(longest, LONGEST_QUESTION) * TREE.letter) + 12;
  const spots = layOut(forest, begin, box);
  const depth = Math.max(...spots.map((spot) => spot.depth));
  const leaves = spots.filter((spot) => spot.isLeaf).length;
  const [width, height] = [depth * (box + TREE.gap) + box + 8, leaves * TREE.row + 8];
  const image = draw(
    "svg",
    {
      width,
      height,
      role: "img",
      "aria-label": `Tree of ${plural(leaves, "leaf").replace("leafs", "leaves")}`,
    },
    ...spots
      .filter((spot) => !spot.isLeaf)
      .flatMap((spot) => [drawBranch(spot, spot.yes, true), drawBranch(spot, spot.no, false)]),
    ...spots.map((spot) => drawNode(forest, spot, largest)),
  );
  return { image, root: spots[0] };
}

/** The nodes of a tree, one row per node. */
function treeTable(forest, tree) {
  const [begin, end] = [forest.begins[tree], forest.begins[tree + 1]];
  const rows = [["node", "question", "yes", "no", "value", "gain", "weight"]];
  for (let at = begin; at < end; at++) {
    const isLeaf = forest.left[at] === 0;
    rows.push([
      at - begin,
      isLeaf ? "" : forest.questions[forest.question[at]],
      isLeaf ? "" : forest.left[at],
      isLeaf ? "" : forest.right[at],
      forest.value[at],
      forest.gain[at],
      forest.weight[at],
    ]);
  }
  return rows;
}

/** Places of all nodes: leaves below each other, splits in the middle of their children. */
function layOut(forest, begin, box) {
  const spots = [];
  let row = 0;
  const visit = (node, depth) => {
    const at = begin + node;
    const isLeaf = forest.left[at] === 0;
    const spot = {
      at,
      depth,
      isLeaf,
      box: isLeaf ? 72 : box,
      x: depth * (box + TREE.gap) + 4,
      missing: forest.missing[at],
      outside: forest.outside[at],
    };
    spots.push(spot);
    if (isLeaf) {
      spot.y = row++ * TREE.row + TREE.row / 2 + 4;
    } else {
      spot.yes = visit(forest.left[at], depth + 1);
      spot.no = visit(forest.right[at], depth + 1);
      spot.y = (spot.yes.y + spot.no.y) / 2;
    }
    return spot;
  };
  visit(0, 0);
  return spots;
}

function drawBranch(from, to, isYes) {
  const [x1, x2] = [from.x + from.box, to.x];
  const middle = (x1 + x2) / 2;
  const style =
    from.missing === 2 || (from.missing === 1) === isYes ? "branch missing" : "branch";
  return draw(
    "g",
    {},
    draw("path", {
      class: style,
      d: `M${x1} ${from.y}C${middle} ${from.y} ${middle} ${to.y} ${x2} ${to.y}`,
    }),
    draw(
      "text",
      { class: "answer", x: x2 - 4, y: to.y + (isYes ? -3 : 10), "text-anchor": "end" },
      isYes ? "yes" : "no",
    ),
  );
}

function drawNode(forest, spot, largest) {
  const { at, x, y, isLeaf, box: width } = spot;
  const value = forest.value[at];
  const facts = isLeaf
    ? [`adds ${figure(value)}`]
    : [
        forest.questions[forest.question[at]],
        `gain ${figure(forest.gain[at])}`,
        `missing values go to ${["“no”", "“yes”", "both branches"][spot.missing]}`,
        ...(spot.outside < 2 ? [`positions beyond the ends go to ${spot.outside ? "“yes”" : "“no”"}`] : []),
      ];
  const tip = [...facts, `weight ${figure(forest.weight[at])}`].join("\n");
  const text = isLeaf
    ? figure(value)
    : shorten(forest.questions[forest.question[at]], LONGEST_QUESTION);
  const level = Math.abs(value) / largest;
  const box = draw("rect", { x, y: y - TREE.high / 2, width, height: TREE.high, rx: 4 });
  if (isLeaf) box.style.setProperty("--level", `${(90 * level).toFixed(1)}%`);
  const style = isLeaf
    ? `leaf ${value < 0 ? "below" : "above"}${strength(0.9 * level)}`
    : "question";
  return draw(
    "g",
    { class: style, "data-tip": tip },
    box,
    draw("text", { x: x + width / 2, y: y + 4, "text-anchor": "middle" }, text),
  );
}
