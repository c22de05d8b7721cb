/** Adds a number to repeated names, so that all names are different. */
export function toUniqueNames(names: readonly string[]): string[] {
  const used = new Set<string>()
  return names.map((name) => {
    let one = name
    for (let i = 2; used.has(one); i++) one = `${name} (${i})`
    used.add(one)
    return one
  })
}
