import { type Command, exitCodes } from '../shape/command.ts'
import { configOf, settingOptions } from '../shape/settings.ts'

export const migrate: Command = {
  name: 'migrate',
  summary: 'Bring the database up to this version and stop; serve does the same when it starts',
  options: settingOptions('data', 'database'),
  async run(terminal, options) {
    const config = configOf(terminal.env, options)
    const { openDatabase } = await import('#open-database.ts')
    const opened = await openDatabase(config)
    await opened.close()
    terminal.print('the database is up to date')
    return exitCodes.ok
  },
}
