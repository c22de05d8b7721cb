import type { ApiReader } from './api-reader.ts'
import { CliError, exitCodes } from './command.ts'

/** Reads what an option has been given as a whole number; what range it is in is for the server to judge. */
export function wholeNumber(flags: string): (api: ApiReader, given: string) => number {
  const [flag] = flags.split(' ')
  return (_, given) => {
    if (/^-?\d{1,15}$/.test(given)) return Number(given)
    throw new CliError(exitCodes.usage, `${flag} takes a whole number, and not ${given}`)
  }
}
