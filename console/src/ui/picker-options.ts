// Search in the options of a picker.
export type Option = { value: string; label: string; description?: string }

const most = 50

/** Options whose label or description contains a text. Labels that begin with it come first. Returns at most fifty. */
export function filterOptions(options: readonly Option[], text: string): readonly Option[] {
  const part = text.trim().toLowerCase()
  const rankOf = ({ label, description = '' }: Option): number => {
    const name = label.toLowerCase()
    if (name.startsWith(part)) return 0
    if (name.includes(part)) return 1
    return description.toLowerCase().includes(part) ? 2 : 3
  }
  return options
    .map((option) => ({ option, rank: rankOf(option) }))
    .filter(({ rank }) => rank < 3)
    .sort((a, b) => a.rank - b.rank)
    .slice(0, most)
    .map(({ option }) => option)
}
