import { settingGroups } from '#config.ts'
import { exitCodes } from '../framework/cli-error.ts'
import type { Command } from '../framework/command.ts'
import { explanation, withoutMarks } from '../framework/settings.ts'

export const configSettings: Command = {
  options: [],
  async run(terminal) {
    terminal.print('Environment variables of pinfold serve. docs/config.md describes them in more detail.')
    for (const { title, about, settings } of settingGroups) {
      terminal.print(`\n${title.toUpperCase()}`)
      if (about !== undefined) terminal.print(withoutMarks(about))
      for (const one of Object.values(settings)) {
        terminal.print(`${one.env}${one.flag ? ` (${one.flag})` : ''}`)
        terminal.print(`    ${explanation(one)}`)
      }
    }
    return exitCodes.ok
  },
}
