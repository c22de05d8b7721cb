import { apiReader, type Query } from '../shape/api-pages.ts'
import type { Command, CommandGroup } from '../shape/command.ts'
import { registryOf } from '../shape/session.ts'
import { pathsOf, type Repo } from './image-names.ts'
import { commonOptions, imageOf, limitOf, show, sinceOf } from './image-options.ts'
import { imagesDelete } from './images-delete.ts'
import { imagesHistory } from './images-history.ts'

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

type Tag = { name: string; digest: string; updateTime: string; deprecated?: boolean }

const tags: Command = {
  name: 'tags',
  summary: 'List the tags of an image, the latest moved first',
  details: 'Tags of signatures and other referrers, dated tags and package epochs are hidden unless asked for.',
  arguments: [{ name: '<image>', summary: 'Such as acme/team/app, or the uid of its repo' }],
  options: [
    { flags: '--digest <digest>', summary: 'Only those that point to it now' },
    { flags: '--updated-within <time>', summary: 'Only those that moved or changed since, such as 12h or 7d' },
    { flags: '--show-referrers', summary: 'Also those of referrers, sha256-…' },
    { flags: '--show-dates', summary: 'Also dated ones, such as 1.0-20260801' },
    { flags: '--show-epochs', summary: 'Also package epochs, such as 1.0-r3' },
    { flags: '--active-only', summary: 'Not those that have reached their end of life' },
    ...commonOptions,
  ],
  async run(terminal, options) {
    const flag = (name: string) => (options[name] === true ? 'true' : undefined)
    const limit = limitOf(options)
    const filters: Query = {
      order_by: 'update_time desc',
      digest: options.digest as string | undefined,
      updated_since: sinceOf(options.updatedWithin),
      include_referrers: flag('showReferrers'),
      include_dates: flag('showDates'),
      include_epochs: flag('showEpochs'),
    }
    const { api, repo } = await imageOf(terminal, options)
    const query = { 'uidp.children_of': repo, ...filters }
    const { items, more } = await api.list<Tag>('/registry/v2/tags', 'tags', query, limit)
    const shown = options.activeOnly === true ? items.filter(({ deprecated }) => !deprecated) : items
    const rows = shown.map((tag) => [tag.name, tag.digest, tag.updateTime, tag.deprecated ? 'end of life' : ''])
    return show(terminal, options, { items: shown }, ['TAG', 'DIGEST', 'UPDATED', ''], rows, more)
  },
}

export const images: CommandGroup = {
  name: 'images',
  summary: 'Look at images, their tags and how these moved, and delete them',
  commands: [list, tags, imagesHistory, imagesDelete],
}
