// Bars side by side as an SVG picture: one group for each thing that is measured, one bar for each who does it.

const WIDTH = 760
const LABEL_WIDTH = 150
const VALUE_WIDTH = 70
const BAR_HEIGHT = 16
const BAR_GAP = 4
const TITLE_HEIGHT = 30
const GROUP_GAP = 14

export interface BarGroup {
  title: string
  /** In the order of drawing; the first is ours. */
  bars: { name: string; value: number; label: string }[]
}

/** Each group has a scale of its own, from nothing to its longest bar. */
export function barChart(title: string, groups: BarGroup[]): string {
  let y = 0
  const parts: string[] = []
  for (const group of groups) {
    const { bars } = group
    parts.push(`<text class="title" x="0" y="${y + 20}">${asText(group.title)}</text>`)
    y += TITLE_HEIGHT
    const longest = Math.max(...bars.map(({ value }) => value))
    for (const [index, { name, value, label }] of bars.entries()) {
      const width = Math.max(1, (value / longest) * (WIDTH - LABEL_WIDTH - VALUE_WIDTH))
      const middle = y + BAR_HEIGHT - BAR_GAP
      parts.push(
        `<text x="${LABEL_WIDTH - 8}" y="${middle}" text-anchor="end">${asText(name)}</text>`,
        `<rect class="${index === 0 ? 'ours' : 'other'}" x="${LABEL_WIDTH}" y="${y}" width="${width.toFixed(1)}" height="${BAR_HEIGHT}" rx="2"/>`,
        `<text x="${(LABEL_WIDTH + width + 6).toFixed(1)}" y="${middle}">${asText(label)}</text>`,
      )
      y += BAR_HEIGHT + BAR_GAP
    }
    y += GROUP_GAP
  }
  const style = `text { font: 13px system-ui, sans-serif; fill: #444 } .title { font-weight: 600; fill: #222 }
    .ours { fill: #2f9e63 } .other { fill: #a9b4bd }
    @media (prefers-color-scheme: dark) { text { fill: #bbb } .title { fill: #eee } .other { fill: #5c6770 } }`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" role="img"><title>${asText(title)}</title><style>${style}</style>\n${parts.join('\n')}\n</svg>\n`
}

const asText = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
