import { CliError, exitCodes } from '../framework/cli-error.ts'
import type { Command } from '../framework/command.ts'
import { NothingServed, operatorDetails, operatorOptions, withOperator } from '../framework/operator.ts'

export const consoleLink: Command = {
  details: `The link is good once, for five minutes, and for the browser that opens it first; the session ends after an hour. The
code is behind the #, where no server and no log sees it.
${operatorDetails}`,
  options: operatorOptions,
  async run(terminal, options) {
    const link = await withOperator(
      terminal,
      options,
      async (api) => {
        const url = await api.url()
        if (url === undefined) return undefined
        const { code } = await api.post('/control/v1/consoleCodes', {})
        return `${url}/ui/enter#${String(code)}`
      },
      { served: true },
    ).catch((error: unknown) => {
      if (!(error instanceof NothingServed)) throw error
      return undefined
    })
    if (link === undefined)
      throw new CliError(exitCodes.unavailable, 'no server runs that it could open; start it first')
    terminal.print(link)
    return exitCodes.ok
  },
}
