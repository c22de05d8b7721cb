import { type Command, outputOption } from '../framework/command.ts'
import { operatorOptions } from '../framework/operator.ts'
import { jsonText, plain } from '../framework/plain-text.ts'
import { readingDetails, withReadingOperator } from '../server/reading-operator.ts'

type Shown = { name: string; records: string; fetchTime?: string; buildTime?: string; tryTime?: string; error: string }

export const vulnerabilitiesStatus: Command = {
  details: `A data source that could not be read keeps its former data. The exit code is 1 if there is such a source.

${readingDetails}`,
  options: [...operatorOptions, outputOption],
  async run(terminal, options) {
    return withReadingOperator(terminal, options, async (api) => {
      const { sources = [] } = await api.get('/control/v1/vulnerabilitySources')
      const listed = sources as Shown[]
      if (options.output === 'json') terminal.print(jsonText(listed))
      else if (listed.length === 0) terminal.print('no data source was read yet; run pinfold vulnerabilities sync')
      else for (const one of listed) for (const line of linesOf(one)) terminal.print(line)
      return listed.some(({ error }) => error !== '') ? 1 : 0
    })
  },
}

function linesOf({ name, records, fetchTime, buildTime, error }: Shown): string[] {
  const built = buildTime ? `, built ${buildTime}` : ''
  const read = fetchTime ? `read ${fetchTime}${built}` : 'never read completely'
  return [plain(`${name}: ${records} records, ${read}`), ...(error === '' ? [] : [`  ${plain(`failed: ${error}`)}`])]
}
