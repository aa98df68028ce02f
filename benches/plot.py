"""Draws figures as SVG: lines against concurrency or the like on a logarithmic scale, shares as stacked columns, and bars.
The colours show on light and dark pages."""

import math

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 100, 24, 56, 56
COLOURS = ("#8a8f98", "#2f81f7", "#d9822b", "#2da44e", "#a371f7")
DASHES = ("6 4", "none", "2 3", "8 3 2 3", "12 4")

# Where the viewer does not tell which page it is on, a grey that can be read on both.
STYLE = """
text { font-family: sans-serif; font-size: 14px; fill: #6e7781; }
.grid { stroke: #8a8f98; stroke-opacity: 0.35; }
@media (prefers-color-scheme: light) { text { fill: #3d444d; } }
@media (prefers-color-scheme: dark) { text { fill: #d1d7e0; } }
"""


def write(path, unit, xs, lines, along="calls under way at once"):
    """Writes one plot; a line is its title and a figure for each of `xs`."""
    bounds = ticks([figure for _, figures in lines for figure in figures])
    parts = [*grid(bounds, unit), *axis(xs, along)]
    for number, (title, figures) in enumerate(lines):
        parts += line(number, figures, bounds) + legend(number, len(lines), title, DASHES[number])
    save(path, parts)


def save(path, parts):
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    parts = "\n".join([f"<style>{STYLE}</style>", *parts])
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n{parts}\n</svg>\n')


def ticks(figures):
    """1, 2 and 5 times powers of ten, from one below the lowest figure to one above the highest."""
    steps = [mantissa * 10.0**power for power in range(-1, 9) for mantissa in (1, 2, 5)]
    first = max(step for step in steps if step <= min(figures))
    last = min(step for step in steps if step >= max(figures))
    return [step for step in steps if first <= step <= last]


def x_of(index, count):
    return LEFT + (WIDTH - LEFT - RIGHT) * (index + 0.5) / count


def y_of(figure, bounds):
    low, high = math.log(bounds[0]), math.log(bounds[-1])
    share = (math.log(figure) - low) / ((high - low) or 1)
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share


def text(x, y, words, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{words}</text>'


def grid(bounds, unit):
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts = [text(16, middle, unit, more=f' transform="rotate(-90 16 {middle:.1f})"')]
    for step in bounds:
        y = y_of(step, bounds)
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        parts.append(text(LEFT - 8, y + 5, f"{step:,.0f}", "end"))
    return parts


def axis(xs, along):
    parts = [text(x_of(i, len(xs)), HEIGHT - BOTTOM + 22, x) for i, x in enumerate(xs)]
    return [*parts, text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, along)]


def line(number, figures, bounds):
    points = [(x_of(i, len(figures)), y_of(figure, bounds)) for i, figure in enumerate(figures)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    style = f'stroke="{COLOURS[number]}" stroke-dasharray="{DASHES[number]}"'
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{COLOURS[number]}"/>' for x, y in points]
    return [f'<polyline points="{path}" fill="none" stroke-width="2.5" {style}/>', *dots]


def legend(number, count, title, dashes="none", width=2.5):
    # The fewer there are, the more room each has; it is three that fill the width above the plot.
    left = LEFT if count <= 3 else 16
    x = left + number * (WIDTH - left - RIGHT) / max(count, 3)
    style = f'stroke="{COLOURS[number]}" stroke-dasharray="{dashes}" stroke-width="{width}"'
    return [f'<line x1="{x:.1f}" y1="24" x2="{x + 28:.1f}" y2="24" {style}/>', text(x + 34, 29, title, "start")]


def stacks(path, parts, panels, along):
    """Writes a panel for each of `panels`, two side by side: a title, and columns of shares that are stacked. `parts` names
    what the shares are of, from the bottom."""
    drawn = [piece for n, name in enumerate(parts) for piece in legend(n, len(parts), name, width=12)]
    gap, rows = 40, math.ceil(len(panels) / 2)
    width, height = (WIDTH - 2 * RIGHT - gap) / 2, (HEIGHT - TOP - BOTTOM - gap * (rows - 1)) / rows
    for n, (title, columns) in enumerate(panels):
        left, top = RIGHT + n % 2 * (width + gap), TOP + n // 2 * (height + gap)
        drawn.append(text(left, top - 6, title, "start"))
        for i, column in enumerate(columns):
            drawn += stack(left + width * i / len(columns), top + height, width / len(columns) - 1, height, column)
    save(path, [*drawn, text(WIDTH / 2, HEIGHT - 20, along)])


def bars(path, names, panels):
    """Writes a panel for each of `panels`, two side by side: a title, and a bar for each of `names`, from zero on. A bar is
    the text of a figure."""
    drawn = [piece for n, name in enumerate(names) for piece in legend(n, len(names), name, width=12)]
    gap, rows = 40, math.ceil(len(panels) / 2)
    width, height = (WIDTH - 2 * RIGHT - gap) / 2, (HEIGHT - TOP - 16 - gap * rows) / rows
    for n, (title, figures) in enumerate(panels):
        left, bottom = RIGHT + n % 2 * (width + gap), TOP + n // 2 * (height + gap) + gap + height - 8
        drawn.append(text(left, bottom - height - 24, title, "start"))
        values = [float(figure.replace(",", "")) for figure in figures]
        for i, (figure, value) in enumerate(zip(figures, values)):
            x, wide, tall = left + width * i / len(names), width / len(names) - 12, height * value / max(values)
            at = f'x="{x:.1f}" y="{bottom - tall:.1f}" width="{wide:.1f}" height="{tall:.1f}"'
            drawn += [f'<rect {at} fill="{COLOURS[i]}"/>', text(x + wide / 2, bottom - tall - 5, figure)]
    save(path, drawn)


def stack(x, bottom, width, height, column):
    """One column of rectangles, in proportion to the figures."""
    parts = []
    for colour, figure in zip(COLOURS, column):
        tall = height * figure / (sum(column) or 1)
        bottom -= tall
        if figure:
            at = f'x="{x:.1f}" y="{bottom:.1f}" width="{width:.1f}" height="{tall:.1f}"'
            parts.append(f'<rect {at} fill="{colour}"/>')
    return parts
