// Drawing on a canvas, in the colours of the page.

class Pen {
  constructor(canvas, width, height) {
    const scale = devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    this.context = canvas.getContext("2d");
    this.context.scale(scale, scale);
    this.style = getComputedStyle(document.documentElement);
    this.context.font = `11.5px ${getComputedStyle(document.body).fontFamily}`;
  }

  colour(name) {
    return this.style.getPropertyValue(name).trim();
  }

  fill(style, x, y, width, height) {
    this.context.fillStyle = style;
    this.context.fillRect(x, y, width, height);
  }

  text(text, x, y, align) {
    this.context.textAlign = align;
    this.context.fillStyle = this.colour("--faint");
    this.context.fillText(text, x, y);
  }

  /** A name on the left, or a number next to the picture. */
  name(text, y, side = "start") {
    if (side === "end") this.text(text, TIMELINE.left - 5, y, "right");
    else this.text(text, 0, y, "left");
  }

  /** A text in the middle of a box, if it fits. */
  fit(text, x, width, y, colour) {
    if (this.context.measureText(text).width + 6 > width) return;
    this.context.textAlign = "center";
    this.context.fillStyle = inkOn(colour);
    this.context.fillText(text, x + width / 2, y);
  }

  frame(x, y, width, height) {
    this.context.strokeStyle = this.colour("--ink");
    this.context.lineWidth = 1.5;
    this.context.strokeRect(x + 0.75, y + 0.75, Math.max(1, width - 1.5), height - 1.5);
  }

  /** A line through [x, lowest, highest] points; null leaves a gap. */
  line(points, colour) {
    this.context.strokeStyle = colour;
    this.context.lineWidth = 1;
    this.context.beginPath();
    let isDown = false;
    for (const point of points) {
      if (point === null) {
        isDown = false;
        continue;
      }
      const [x, low, high] = point;
      if (isDown) this.context.lineTo(x, low);
      else this.context.moveTo(x, low);
      this.context.lineTo(x, high + 0.01);
      isDown = true;
    }
    this.context.stroke();
  }
}
