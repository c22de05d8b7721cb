import { type Command, outputOption } from '../framework/command.ts'
import { operatorOptions } from '../framework/operator.ts'
import { jsonText, plain } from '../framework/plain-text.ts'
import { readingDetails, withReadingOperator } from '../server/reading-operator.ts'

const mostShown = 1000

export const vulnerabilitiesVerify: Command = {
  details: `Changes nothing. The exit code is 1 if a stored finding differs. Comparisons that still wait can cause differences; their number is
printed too.

${readingDetails}`,
  options: [...operatorOptions, outputOption],
  async run(terminal, options) {
    return withReadingOperator(terminal, options, async (api) => {
      const differences: string[] = []
      let [checked, found, waiting] = [0, 0, 0]
      for (let after: string | undefined; after !== ''; ) {
        const answer = await api.post('/control/v1/findings:verify', { after: after ?? '' })
        const { differences: some = [], next = '' } = answer as { differences?: string[]; next?: string }
        found += some.length
        differences.push(...some.slice(0, mostShown - differences.length))
        checked += Number(answer.checked ?? 0)
        waiting = Number(answer.waiting ?? 0)
        after = next
      }
      if (options.output === 'json') terminal.print(jsonText({ checked, waiting, differences }))
      else {
        for (const one of differences) terminal.print(plain(one))
        terminal.print(`${checked} packages and lists checked, ${found} differences, ${waiting} comparisons wait`)
      }
      return found > 0 ? 1 : 0
    })
  },
}
