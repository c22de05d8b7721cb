import { CliError, exitCodes } from '../framework/cli-error.ts'
import type { Command } from '../framework/command.ts'
import { NeverServed, operatorDetails, operatorOptions, withOperator } from '../framework/operator.ts'

export const consoleLink: Command = {
  details: `The link works once, within 5 minutes, in the browser that opens it first. The session in the console ends after one hour.
The code is in the fragment of the URL (after #), so it appears in no log of a server.
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
      if (!(error instanceof NeverServed)) throw error
      return undefined
    })
    if (link === undefined)
      throw new CliError(
        exitCodes.unavailable,
        'no link was created: no server runs on the data folder or database; start it with pinfold serve',
      )
    terminal.print(link)
    return exitCodes.ok
  },
}
