import { nearest } from '#lib/naming/nearest.ts'

/** What commands print with `-o env`; the shell that reads it hands it on to every later one. */
const printed = /^PINFOLD_(?:\w+_(?:ID|NAME)|OCI_TOKEN)$/

/** What is wrong with variables that are called like settings and are none, with the one that may have been meant. */
export function unknownSettings(variables: readonly string[], known: readonly string[]): string[] {
  const unknown = variables.filter((name) => {
    return name.startsWith('PINFOLD_') && !/^PINFOLD_TEST_/.test(name) && !known.includes(name) && !printed.test(name)
  })
  return unknown.map((name) => {
    const meant = nearest(name, known)
    const next = meant === undefined ? 'pinfold config lists those that there are' : `did you mean ${meant}?`
    return `${name} is not a setting; ${next}`
  })
}
