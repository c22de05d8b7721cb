import { startServer } from '#api/server.ts'
import { readFact, writeFact } from '#db/facts.ts'
import { createApp } from '../create-app.ts'
import { type Command, exitCodes } from './command.ts'
import { fillDemo } from './demo.ts'
import { firstSteps } from './first-steps.ts'
import { configOf, settingOptions } from './settings.ts'

/** How often signing keys are looked at; they are announced a day before they are used. */
const keyCheckMs = 60_000

export const serve: Command = {
  name: 'serve',
  summary: 'Serve the API over REST and gRPC on one port',
  options: [
    ...settingOptions('data', 'listen', 'url', 'database'),
    { flags: '--demo', summary: 'Fill a fresh data folder with an example company' },
  ],
  async run(terminal, options) {
    const app = await createApp(configOf(terminal.env, options))
    await using _closing = { [Symbol.asyncDispose]: () => app.close() }
    const isFirst = (await readFact(app.db, 'url')) === undefined
    const server = await startServer(app)
    await app.db.tx((tx) => writeFact(tx, 'url', server.url))
    if (options.demo) {
      if (!(await fillDemo(app, server))) terminal.say('the data folder is not empty, so the demo was not added')
    }
    const keys = setInterval(() => {
      app.keyring.refresh().catch((error: unknown) => app.log.error('signing keys could not be refreshed', { error }))
    }, keyCheckMs)

    terminal.print(`ready ${server.url}`)
    app.log.info('serving', { url: server.url, engine: app.db.engine })
    if (isFirst) terminal.print(firstSteps(server.url, app.config.data))
    await terminal.untilAsked()
    app.log.info('draining')
    clearInterval(keys)
    await server.close()
    return exitCodes.ok
  },
}
