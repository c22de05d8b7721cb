import { nearest } from '#lib/naming/nearest.ts'

/** What is wrong with variables that are called like settings and are none, with the one that may have been meant. */
export function unknownSettings(variables: readonly string[], known: readonly string[]): string[] {
  const unknown = variables.filter((name) => {
    return name.startsWith('PINFOLD_') && !name.startsWith('PINFOLD_TEST_') && !known.includes(name)
  })
  return unknown.map((name) => {
    const meant = nearest(name, known)
    const next = meant === undefined ? 'pinfold config lists those that there are' : `did you mean ${meant}?`
    return `${name} is not a setting; ${next}`
  })
}
