import { commonOptions, show } from '../registry/image-options.ts'
import { apiReader } from '../shape/api-pages.ts'
import { type Command, exitCodes } from '../shape/command.ts'
import { plain } from '../shape/plain-text.ts'
import { limitOf } from '../shape/verbs.ts'
import { type FoundImage, imagesOf, namesOfImages, sayGaps, sayUnknown, scopeOf, scopeOption } from './scanned-image.ts'

type Vulnerable = FoundImage & { state: string; severity: string; purls: string[]; morePurls?: boolean }

export const vulnerabilitiesImages: Command = {
  details: `Nothing is scanned for it. An image that is not listed need not be free of it: the command says of how many images it is
not known what they contain, and what was not compared. The exit code is 1 if no image is listed and not everything was compared.`,
  arguments: [{ name: '<vulnerability>', summary: 'Its CVE, or any other id that a source has for it' }],
  options: [scopeOption, ...commonOptions],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const query = { vulnerability: String(options.vulnerability), scope_uid: await scopeOf(api, options) }
    const { items, more, unknown, coverage, gaps } = await imagesOf<Vulnerable>(
      api,
      '/registry/v2/vulnerableImages',
      query,
      limitOf(options),
    )
    const names = await namesOfImages(api, items)
    const rows = items.map(({ state, severity, purls, morePurls }, i) => [
      names[i]!,
      state.toLowerCase(),
      severity,
      `${purls.join(' ')}${morePurls ? ' …' : ''}`,
    ])
    const answer = { items, ...unknown, coverage, gaps }
    show(terminal, options, answer, head, rows, more)
    const isRead = unknown.unknownImages === 0 && !unknown.moreUnknownImages
    const isWhole = coverage ? coverage.state === 'COMPARED' : isRead
    const isSaid = items.length === 0 && options.output !== 'json'
    if (isSaid) {
      const none = `no image is known to have ${query.vulnerability}`
      terminal.print(plain(coverage ? `${none}${isWhole ? ';' : ', but'} ${coverage.summary}` : none))
    }
    // A server of an earlier release has no summary that says it.
    if (!isSaid || coverage === undefined) {
      sayUnknown(terminal.say, unknown)
      sayGaps(terminal.say, gaps)
    }
    return items.length === 0 && !isWhole ? exitCodes.failed : exitCodes.ok
  },
}

const head = ['IMAGE', 'STATE', 'SEVERITY', 'PACKAGES']
