import { CliError, exitCodes } from '../framework/cli-error.ts'
import type { Command } from '../framework/command.ts'
import { configOf, settingOptions } from '../framework/settings.ts'

export const migrate: Command = {
  details: `Servers can run during migrations that only add to the database. Migrations that remove something that earlier versions need
run only with --finish. Use --finish when all servers run this version, and none will return to an earlier one.`,
  options: [
    ...settingOptions('data', 'database'),
    { flags: '--finish', summary: 'Also remove what only earlier versions need' },
  ],
  async run(terminal, options) {
    const config = configOf(terminal, options)
    const { openDatabase, ServerRunning } = await import('#open-database.ts')
    const show = (id: string, rows: number) => terminal.status?.(rows === 0 ? `${id} …` : `${id}: ${rows} rows …`)
    const opened = await openDatabase(config, options.finish ? 'finish' : 'migrate', show)
      .catch((error: unknown) => {
        throw error instanceof ServerRunning ? new CliError(exitCodes.unavailable, error.message, error) : error
      })
      .finally(() => terminal.status?.(''))
    await opened.close()
    if (terminal.isSeen) for (const id of opened.applied) terminal.say(`applied ${id}`)
    terminal.print('the database is up to date')
    return exitCodes.ok
  },
}
