// Commands of the operator. Commands that only read create no files, and call the server that the environment names.
import type { Answer } from '../framework/api-pages.ts'
import type { Command, Options, Terminal } from '../framework/command.ts'
import { type OperatorApi, withOperator } from '../framework/operator.ts'

/** Text for the help of commands that only read. */
export const readingDetails = `Calls the server that runs on the data folder. If none runs, opens the folder itself; never creates one. If PINFOLD_API or
PINFOLD_TOKEN is set, and no data folder or database is given, calls that server with the token or the session of the operator.
With a database URL, opens the database, or calls the server of PINFOLD_API.`

type OperatorCommand = Omit<Command, 'run'> & {
  /** True for a command that only reads. */
  reads?: true
  /** True if the command fails where no server has ever run. */
  served?: true
  /** Throws if options are wrong. Called before anything is opened. */
  check?(options: Options): void
  run(api: OperatorApi, options: Options, terminal: Terminal): Promise<Answer | undefined>
}

/** Creates a command that calls the API with the operator's rights, and prints the answer. */
export function operatorCommand({ reads, served, check, run, ...command }: OperatorCommand): Command {
  return {
    ...command,
    async run(terminal, options) {
      check?.(options)
      const { printAnswer } = await import('../framework/api-pages.ts')
      const work = (api: OperatorApi) => run(api, options, terminal)
      const answer = reads
        ? await withReadingOperator(terminal, options, work)
        : await withOperator(terminal, options, work, { served: served === true })
      return printAnswer(terminal, options, answer)
    },
  }
}

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
  const { call, session, operator, list } = await apiReader(terminal, options)
  return work({
    url: async () => session.api,
    get: (path) => call('GET', path),
    post: (path, body) => call('POST', path, body),
    operator,
    list,
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
