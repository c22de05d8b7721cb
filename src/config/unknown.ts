import { nearest } from '#lib/naming/nearest.ts'

/** Variables that commands print with `-o env`; the shell that reads them passes them on to every later command. */
const printed = /^PINFOLD_(?:\w+_(?:ID|NAME)|OCI_TOKEN)$/

/** Problems with variables that are named like settings but are none, with the closest setting. */
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
