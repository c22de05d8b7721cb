import { commonOptions, show } from '../registry/image-options.ts'
import { apiReader } from '../shape/api-pages.ts'
import type { Command } from '../shape/command.ts'
import { limitOf } from '../shape/verbs.ts'
import { digestOf, type Gap, sayGaps } from './scanned-image.ts'

type Package = { purl: string; name: string; version: string; ecosystem: string; origin: string }

export const vulnerabilitiesPackages: Command = {
  details: 'What could not be read is said on standard error: what is not listed may be there.',
  arguments: [
    { name: '<image>', summary: 'Such as acme/team/app:1.0 or acme/app@sha256:…; its tag latest without one' },
  ],
  options: commonOptions,
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const { repo, digest } = await digestOf(api, String(options.image))
    const path = `/registry/v2/repos/${repo}/digests/${digest}/packages`
    const { items, more } = await api.list<Package>(path, 'packages', {}, limitOf(options))
    const gaps = ((await api.call('GET', `${path}?page_size=1`)).gaps ?? []) as Gap[]
    const sorted = items.sort((one, other) => (one.purl < other.purl ? -1 : 1))
    const rows = sorted.map(({ name, version, ecosystem, origin }) => [name, version, ecosystem, origin])
    const code = show(terminal, options, { items: sorted, gaps }, ['NAME', 'VERSION', 'ECOSYSTEM', 'FROM'], rows, more)
    sayGaps(terminal.say, gaps)
    return code
  },
}
