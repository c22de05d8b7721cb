import { commonOptions, show } from '../registry/image-options.ts'
import { apiReader } from '../shape/api-pages.ts'
import type { Command } from '../shape/command.ts'
import { limitOf } from '../shape/verbs.ts'
import { type FoundImage, imagesOf, namesOfImages, sayUnknown, scopeOf, scopeOption } from './scanned-image.ts'

type WithPackage = FoundImage & { packages: { purl: string }[]; morePackages?: boolean; uncertain: boolean }

export const vulnerabilitiesImagesWith: Command = {
  details: `A name also stands for what packages were built from: openssl finds libssl3. Images of which it is not known what they
contain are counted, not listed.`,
  arguments: [{ name: '<package>', summary: 'Its name, or a package URL such as pkg:pypi/flask@2.0.0' }],
  options: [
    { flags: '--ecosystem <name>', summary: 'Only of this ecosystem, such as PyPI, Alpine or Alpine:v3.19' },
    { flags: '--of <version>', summary: 'Only this version' },
    { flags: '--range <range>', summary: 'Only versions in a range, such as ">=1.2.0,<1.2.7"' },
    scopeOption,
    ...commonOptions,
  ],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const named = String(options.package)
    const text = (name: string) => options[name] as string | undefined
    const query = {
      [named.startsWith('pkg:') ? 'purl' : 'name']: named,
      ecosystem: text('ecosystem'),
      version: text('of'),
      version_range: text('range'),
      scope_uid: await scopeOf(api, options),
    }
    const { items, more, unknown } = await imagesOf<WithPackage>(
      api,
      '/registry/v2/imagesWithPackage',
      query,
      limitOf(options),
    )
    const names = await namesOfImages(api, items)
    const rows = items.map(({ packages, morePackages, uncertain }, i) => {
      const more = `${morePackages ? ' …' : ''}${uncertain ? ' (cannot be compared)' : ''}`
      return [names[i]!, `${packages.map(({ purl }) => purl).join(' ')}${more}`]
    })
    const code = show(terminal, options, { items, ...unknown }, ['IMAGE', 'PACKAGES'], rows, more)
    sayUnknown(terminal.say, unknown)
    return code
  },
}
