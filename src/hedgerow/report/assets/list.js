// A list of any length of which only the visible rows are in the document.

// Browsers cannot make elements much higher than this.
const HIGHEST = 2e7;
const MARGIN = 4;

class VirtualList {
  /**
   * @param {string} name - what is listed, for screen readers
   * @param {number} rowHeight - in pixels
   * @param {function(number): Element} render - makes row i
   * @param {function(number): void} onSelect - called with the row that was selected
   */
  constructor(name, rowHeight, render, onSelect) {
    Object.assign(this, { rowHeight, render, onSelect, size: 0, selected: -1 });
    this.space = make("div", { class: "list-space" });
    this.element = make(
      "div",
      {
        class: "list",
        role: "listbox",
        "aria-label": name,
        tabindex: 0,
        scroll: () => this.paint(),
        keydown: (event) => this.onKey(event),
        click: (event) => this.onClick(event),
      },
      this.space,
    );
    this.key = `row-${VirtualList.made++}`;
    new ResizeObserver(() => this.paint()).observe(this.element);
  }

  /** Shows other rows, the first on top. */
  setSize(size) {
    this.size = size;
    this.selected = -1;
    this.space.style.height = `${Math.min(size * this.rowHeight, HIGHEST)}px`;
    this.element.scrollTop = 0;
    this.paint();
  }

  /** Pixels of the list for a pixel of scrolling: 1, except for very long lists. */
  get scale() {
    const sight = this.element.clientHeight;
    const whole = Math.max(1, this.size * this.rowHeight - sight);
    return Math.max(1, whole / Math.max(1, HIGHEST - sight));
  }

  paint() {
    const { scrollTop, clientHeight } = this.element;
    const top = scrollTop * this.scale;
    const first = Math.max(0, Math.floor(top / this.rowHeight) - MARGIN);
    const stop = Math.min(this.size, Math.ceil((top + clientHeight) / this.rowHeight) + MARGIN);
    const rows = [];
    for (let i = first; i < stop; i++)
      rows.push(this.place(i, scrollTop + i * this.rowHeight - top));
    this.space.replaceChildren(...rows);
  }

  place(i, y) {
    const row = this.render(i);
    row.id = `${this.key}-${i}`;
    row.dataset.row = i;
    row.style.transform = `translateY(${y}px)`;
    row.setAttribute("role", "option");
    row.setAttribute("aria-selected", i === this.selected);
    row.setAttribute("aria-posinset", i + 1);
    row.setAttribute("aria-setsize", this.size);
    return row;
  }

  /** Chooses a row; `inMiddle` says where to show it if it is out of sight. */
  select(i, inMiddle = false) {
    if (!this.size) return;
    this.selected = Math.max(0, Math.min(i, this.size - 1));
    this.reveal(this.selected, inMiddle);
    this.paint();
    this.element.setAttribute("aria-activedescendant", `${this.key}-${this.selected}`);
    this.onSelect(this.selected);
  }

  /** Scrolls no further than necessary. */
  reveal(i, inMiddle) {
    const scale = this.scale;
    const [now, sight] = [this.element.scrollTop * scale, this.element.clientHeight];
    const [top, bottom] = [i * this.rowHeight, (i + 1) * this.rowHeight - sight];
    if (now <= top && now >= bottom) return;
    const next = inMiddle ? (top + bottom) / 2 : now > top ? top : bottom;
    this.element.scrollTop = next / scale;
  }

  onKey(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.rowHeight) - 1);
    const steps = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -Infinity,
      End: Infinity,
    };
    if (!(event.key in steps)) return;
    event.preventDefault();
    this.select(this.selected + steps[event.key]);
  }

  onClick(event) {
    const row = event.target.closest("[data-row]");
    if (row) this.select(Number(row.dataset.row));
  }
}
VirtualList.made = 0;
