import type { IncomingMessage } from 'node:http'
import { CliError, exitCodes } from '../framework/cli-error.ts'
import type { Command } from '../framework/command.ts'
import { quietConfigOf, settingOptions } from '../framework/settings.ts'

const limitMs = 4000

export const health: Command = {
  details: `Requests /readyz at the address that the server listens on. Exits with 0 if the server is ready, and with 69 if not.
Needs no data folder and no token.`,
  options: settingOptions('listen', 'tlsCert', 'tlsKey'),
  async run(terminal, options) {
    const { listen, tlsCert } = quietConfigOf(terminal.env, options)
    const status = await ask(listen, tlsCert !== '').catch((error: NodeJS.ErrnoException) => {
      throw new CliError(
        exitCodes.unavailable,
        `no server answers on port ${listen.port}: ${error.code ?? error.message}`,
      )
    })
    if (status !== 200) throw new CliError(exitCodes.unavailable, `the server is not ready: /readyz answered ${status}`)
    terminal.print('ready')
    return exitCodes.ok
  },
}

const everywhere: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

/** Requests the health status. The certificate is for another host name, so it is not verified. The request has no secret. */
async function ask({ host, port }: { host: string; port: number }, secure: boolean): Promise<number> {
  // An import would load all of fetch at each health check of a container (see http-call.ts).
  const { get } = process.getBuiltinModule(secure ? 'node:https' : 'node:http')
  const target = {
    host: everywhere[host] ?? host,
    port,
    path: '/readyz',
    rejectUnauthorized: false,
    agent: false as const,
  }
  return new Promise((resolve, reject) => {
    const answered = (res: IncomingMessage) => {
      res.resume()
      resolve(res.statusCode!)
    }
    get({ ...target, signal: AbortSignal.timeout(limitMs) }, answered).once('error', reject)
  })
}
