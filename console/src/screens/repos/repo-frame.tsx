// Frame around each tab of a repository. It finds the repository, and then shows the tab.
import type { ComponentChildren } from 'preact'
import { paths } from '../../app/paths.ts'
import { findRepo, type WithPath } from '../../data/names.ts'
import type { Repo } from '../../data/types.ts'
import { type Loaded, useLoad } from '../../ui/load.ts'
import { nameOf, Screen, trailOf } from '../../ui/screen.tsx'
import { Shown } from '../../ui/states.tsx'
import { accessWords } from '../../words/access.ts'
import { repoWords } from '../../words/repos.ts'

type Found = WithPath<Repo>
type Props = {
  names: readonly string[]
  view: keyof typeof repoWords.repoViews
  children: (found: Found, read: Loaded<Found>) => ComponentChildren
}

export function RepoFrame({ names, view, children }: Props) {
  const read = useLoad(`repo ${names.join('/')}`, () => findRepo(names))
  const here = paths.repo(names)
  const tabs = [
    ...Object.entries(repoWords.repoViews).map(([name, label]) => ({
      ...{ label, href: name === 'tags' ? here : `${here}?view=${name}`, isNow: view === name },
    })),
    { label: accessWords.access, href: paths.group(names.slice(0, -1), 'members'), isNow: false },
  ]
  return (
    <Screen title={pathIn(names)} trail={trailOf(names)} crumb={nameOf(names.at(-1)!)} tabs={tabs}>
      <Shown of={read}>
        {(found) => (
          <>
            {found.item.description !== '' && (
              <p class="dim">
                <bdi>{found.item.description}</bdi>
              </p>
            )}
            {children(found, read)}
          </>
        )}
      </Shown>
    </Screen>
  )
}

/** Path of a repository in its organization. */
const pathIn = (names: readonly string[]): string => (names.length > 1 ? names.slice(1) : names).map(nameOf).join('/')
