// API client for operator commands that only read. They create no files, and call the server that the environment names.
import type { Options, Terminal } from '../framework/command.ts'
import { type OperatorApi, withOperator } from '../framework/operator.ts'

/** Text for the help of commands that use this file. */
export const readingDetails = `Calls the server that runs on the data folder. If none runs, opens the folder itself; never creates one. If PINFOLD_API or
PINFOLD_TOKEN is set, and no data folder or database is given, calls that server with the token or the session of the operator.
With a database URL, opens the database, or calls the server of PINFOLD_API.`

/**
 * Runs `work` with the operator's rights, as `withOperator` does. Throws NeverServed if no server has ever run on the data
 * folder.
 */
export async function withReadingOperator<T>(
  terminal: Terminal,
  options: Options,
  work: (api: OperatorApi) => Promise<T>,
): Promise<T> {
  if (!namesServer(terminal, options)) return withOperator(terminal, options, work, { served: true })
  const { apiReader } = await import('../framework/api-pages.ts')
  const { call, session } = await apiReader(terminal, options)
  return work({
    url: async () => session.api,
    get: (path) => call('GET', path),
    post: (path, body) => call('POST', path, body),
  })
}

/**
 * True if the command calls a server. If the options or settings name both a server and a data folder or database, the latter has
 * priority.
 */
function namesServer({ env }: Terminal, { data, database }: Options): boolean {
  if (data !== undefined || database !== undefined || env.PINFOLD_DATA || env.PINFOLD_DATABASE) return false
  return Boolean(env.PINFOLD_API || env.PINFOLD_TOKEN)
}
