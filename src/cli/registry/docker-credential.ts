// Protocol of Docker's credential helpers. The argument is the action. Standard input has the registry or a JSON document.
// Answers and errors go to standard output.

import { subdomainOf } from '#lib/net/subdomain.ts'
import { jsonText } from '#lib/terminal/plain-text.ts'
import { CliError, exitCodes, usageError } from '../framework/cli-error.ts'
import type { Command, Options, Terminal } from '../framework/command.ts'
import { accessToken, registryOf, sessionOf } from '../framework/session.ts'

/** Docker recognizes this text as a missing credential, and continues without one. */
const nothingFound = 'credentials not found in native keychain'

/** Maximum size of the document from Docker. */
const maxInput = 64 * 1024

export const dockerCredential: Command = {
  details: `Docker calls this command; configure it with pinfold docker configure.
get reads the registry from standard input, and prints an access token for it. The Secret can also be used as a bearer token.
store and erase do nothing, because no password is stored. list prints no registries.`,
  arguments: [{ name: '<action>', summary: 'Action of the protocol: get, list, store or erase' }],
  options: [],
  async run(terminal, options) {
    if (options.action === 'list') {
      terminal.print('{}')
      return exitCodes.ok
    }
    const input = (await terminal.input()).slice(0, maxInput).trim()
    if (options.action === 'store' || options.action === 'erase') return exitCodes.ok
    if (options.action !== 'get') throw usageError('the action must be get, list, store or erase')
    return get(terminal, options, input)
  },
}

async function get(terminal: Terminal, options: Options, server: string): Promise<number> {
  try {
    const session = sessionOf(terminal, options)
    const registry = registryOf(session)
    const host = hostOf(server)
    if (host !== registry && !subdomainOf(host, registry)) {
      terminal.print(nothingFound)
      return exitCodes.failed
    }
    const secret = await accessToken(terminal, session, registry)
    terminal.print(jsonText({ ServerURL: server, Username: '_token', Secret: secret }))
    return exitCodes.ok
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    terminal.print(`pinfold: ${error.message}`)
    return error.exitCode
  }
}

/** Docker names a registry by its host. Some other clients of the protocol use a URL. */
function hostOf(server: string): string {
  return server.includes('://') ? (URL.parse(server)?.host ?? '') : server.replace(/\/.*$/, '')
}
