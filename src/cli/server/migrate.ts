import { CliError, exitCodes } from '../framework/cli-error.ts'
import type { Command } from '../framework/command.ts'
import { configOf, settingOptions } from '../framework/settings.ts'

export const migrate: Command = {
  details: `Servers may run meanwhile, where all that there is to do expands the database or fills what was added. What takes something away that
earlier versions need waits for --finish, when no server of an earlier version is there or comes back.`,
  options: [
    ...settingOptions('data', 'database'),
    { flags: '--finish', summary: 'Take away what only earlier versions need' },
  ],
  async run(terminal, options) {
    const config = configOf(terminal, options)
    const { openDatabase, ServerThere } = await import('#open-database.ts')
    const show = (id: string, rows: number) => terminal.status?.(rows === 0 ? `${id} …` : `${id}: ${rows} rows …`)
    const opened = await openDatabase(config, options.finish ? 'finish' : 'migrate', show)
      .catch((error: unknown) => {
        throw error instanceof ServerThere ? new CliError(exitCodes.unavailable, error.message, error) : error
      })
      .finally(() => terminal.status?.(''))
    await opened.close()
    if (terminal.isSeen) for (const id of opened.applied) terminal.say(`applied ${id}`)
    terminal.print('the database is up to date')
    return exitCodes.ok
  },
}
