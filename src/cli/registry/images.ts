import { apiReader } from '../shape/api-pages.ts'
import type { Query } from '../shape/api-reader.ts'
import type { Command, CommandGroup } from '../shape/command.ts'
import { registryOf } from '../shape/session.ts'
import { limitOf } from '../shape/verbs.ts'
import { pathsOf, type Repo } from './image-names.ts'
import { commonOptions, show } from './image-options.ts'
import { imagesDelete } from './images-delete.ts'
import { imagesHistory } from './images-history.ts'
import { imagesResolve } from './images-resolve.ts'
import { repos } from './repos.ts'
import { holds, quarantine, retentionRules, tagRules } from './retention.ts'
import { tags } from './tags.ts'
import { upstreams } from './upstreams.ts'

const list: Command = {
  name: 'list',
  summary: 'List the images that you can see',
  options: [{ flags: '--group <uid>', summary: 'Only those below this group' }, ...commonOptions],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const query: Query = { 'uidp.descendants_of': options.group as string | undefined }
    const { items, more } = await api.list<Repo>('/registry/v2/repos', 'repos', query, limitOf(options))
    const paths = await pathsOf(api, items)
    const shown = items
      .map((repo) => ({ ...repo, image: `${registryOf(api.session)}/${paths.get(repo.uid)}` }))
      .sort((a, b) => (a.image < b.image ? -1 : 1))
    const rows = shown.map(({ image, updateTime, description }) => [image, updateTime, description])
    return show(terminal, options, { items: shown }, ['IMAGE', 'UPDATED', 'ABOUT'], rows, more)
  },
}

export const images: CommandGroup = {
  name: 'images',
  summary: 'Look at images, their tags and how these moved, and delete them',
  commands: [
    list,
    repos,
    tags,
    retentionRules,
    tagRules,
    holds,
    quarantine,
    upstreams,
    imagesHistory,
    imagesResolve,
    imagesDelete,
  ],
}
