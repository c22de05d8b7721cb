import { CliError, exitCodes, type Options } from '../shape/command.ts'

/** The size of the one page that is shown, as the API takes it. */
export function limitOf({ limit = '50' }: Options): string {
  if (/^\d{1,3}$/.test(String(limit)) && Number(limit) >= 1 && Number(limit) <= 200) return String(limit)
  throw new CliError(exitCodes.usage, '--limit must be a number from 1 to 200')
}
