import { settings } from '#config.ts'
import { exitCodes } from '../framework/cli-error.ts'
import type { Command } from '../framework/command.ts'
import { withoutMarks } from '../framework/settings.ts'

export const configSettings: Command = {
  options: [],
  async run(terminal) {
    for (const { env, flag, default: fallback, doc } of Object.values(settings)) {
      terminal.print(`${env}${flag ? ` (${flag})` : ''}`)
      terminal.print(`    ${withoutMarks(doc)}${fallback === '' ? '' : ` Default: ${fallback}.`}`)
    }
    return exitCodes.ok
  },
}
