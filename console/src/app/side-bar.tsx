// Side bar: organization switcher, search, nouns, server administration and account. On narrow screens it is a popover.
import { useEffect, useRef, useState } from 'preact/hooks'
import { readPage } from '../data/list.ts'
import { readTopGroups } from '../data/top-groups.ts'
import { Avatar } from '../ui/avatar.tsx'
import { Icon, type IconName } from '../ui/icon.tsx'
import { Menu, MenuItem } from '../ui/menu.tsx'
import { nameOf } from '../ui/screen.tsx'
import { words } from '../words.ts'
import { AccountMenu } from './account-menu.tsx'
import { nounPageAt, nounPath, usableNouns } from './nouns.ts'
import { organization } from './organization.ts'
import { closePalette, openPalette } from './palette.ts'
import { paths } from './paths.ts'
import { go, here, route } from './route.ts'
import { me } from './session.ts'

export const sideBar = 'side'

export function SideBar({ showHelp }: { showHelp: () => void }) {
  const bar = useRef<HTMLElement>(null)
  const { head } = route.value
  const { pathname } = here()
  useEffect(() => {
    if (bar.current?.matches(':popover-open')) bar.current.hidePopover()
  }, [pathname])
  return (
    <header id={sideBar} ref={bar} popover="auto">
      <Switcher />
      <Search />
      <button
        type="button"
        class="rail-search"
        aria-haspopup="dialog"
        aria-label={words.search}
        title={words.search}
        onClick={() => openPalette()}
      >
        <Icon name="search" />
      </button>
      {isServerHead(head) ? <ServerLinks /> : <OrganizationLinks />}
      <nav class="foot" aria-label={words.serverAndAccount}>
        <ul>
          {me.isOperator && (
            <Item href={paths.organizations} icon="server" label={words.serverAdministration} isNow={false} />
          )}
        </ul>
        <AccountMenu showHelp={showHelp} />
      </nav>
    </header>
  )
}

const serverHeads = ['setup', 'organizations', 'sources', 'advisories', 'libraries']
const isServerHead = (head: string): boolean => serverHeads.includes(head)

function Item({ href, icon, label, isNow }: { href: string; icon: IconName; label: string; isNow: boolean }) {
  return (
    <li>
      <a href={href} title={label} aria-current={isNow ? 'page' : undefined}>
        <Icon name={icon} />
        <span class="label">{label}</span>
      </a>
    </li>
  )
}

function OrganizationLinks() {
  const { head, names, tail } = route.value
  const name = organization.value
  const inGroup = head === 'g' ? nounPageAt(names.length > 1 && tail.length === 0 ? ['repositories'] : tail) : undefined
  const now = head === 'r' ? 'repositories' : inGroup?.noun.name
  if (name === '') return null
  return (
    <nav aria-label={words.main}>
      <ul>
        {usableNouns().map((noun) => (
          <Item
            key={noun.name}
            href={nounPath(noun, [name])}
            icon={noun.icon}
            label={words.nouns[noun.name]}
            isNow={noun.name === now}
          />
        ))}
      </ul>
    </nav>
  )
}

function ServerLinks() {
  const { head } = route.value
  const links = [
    ...(me.isOperator ? ([{ name: 'setup', href: paths.setup, icon: 'setup', label: words.setup }] as const) : []),
    { name: 'organizations', href: paths.organizations, icon: 'organization', label: words.organizations },
    ...(me.isOperator
      ? [{ name: 'sources', href: paths.sources, icon: 'integrations', label: words.dataSources } as const]
      : []),
    { name: 'advisories', href: paths.advisories, icon: 'advisories', label: words.advisories },
    { name: 'libraries', href: paths.libraries, icon: 'libraries', label: words.libraries },
  ] as const
  return (
    <nav aria-label={words.serverAdministration}>
      <ul>
        {links.map(({ name, ...link }) => (
          <Item key={name} {...link} isNow={head === name} />
        ))}
      </ul>
    </nav>
  )
}

/** Menu with the organizations of the user. They are read when the menu is opened. */
function Switcher() {
  const [names, setNames] = useState<readonly string[]>()
  const name = organization.value
  const read = () => {
    if (names === undefined) readNames().then(setNames, () => setNames([]))
  }
  return (
    <>
      <button type="button" class="switcher" popovertarget="organizations" title={words.switchOrganization}>
        <Avatar name={name === '' ? words.product : nameOf(name)} isPerson={false} />
        <span class="unseen">{words.switchOrganization}: </span>
        <bdi>{name === '' ? words.product : nameOf(name)}</bdi>
        <Icon name="switch" />
      </button>
      <Menu id="organizations" label={words.organizations} onOpen={read}>
        <ul>
          {(names ?? []).map((one) => (
            <MenuItem key={one} href={paths.group([one])} isNow={one === name}>
              <bdi>{nameOf(one)}</bdi>
            </MenuItem>
          ))}
          {names !== undefined && names.length === mostNames && <li class="hint">{words.moreOrganizations}</li>}
        </ul>
        <hr />
        <ul>
          <MenuItem href={paths.organizations} icon="organization">
            {words.allOrganizations}
          </MenuItem>
        </ul>
      </Menu>
    </>
  )
}

const mostNames = 50

async function readNames(): Promise<readonly string[]> {
  const query = { 'uidp.inRoot': true, orderBy: 'name' }
  const { items } = await readPage<{ name: string }>('/iam/v2/groups', 'groups', { size: mostNames, query })
  if (items.length > 0) return items.map(({ name }) => name)
  return (await readTopGroups(new AbortController().signal)).map(({ names }) => names[0]!)
}

function Search() {
  const search = (event: SubmitEvent) => {
    event.preventDefault()
    const q = String(new FormData(event.target as HTMLFormElement).get('q') ?? '').trim()
    closePalette()
    if (q !== '') go(paths.search(q))
  }
  const { head, query } = route.value
  const q = head === 'search' ? (query.get('q') ?? '') : ''
  return (
    <search>
      <form onSubmit={search}>
        <label class="unseen" for="side-q">
          {words.searchLabel}
        </label>
        <Icon name="search" />
        <input
          id="side-q"
          key={q}
          name="q"
          type="search"
          defaultValue={q}
          placeholder={words.search}
          title={words.searchHint}
          autocomplete="off"
          aria-haspopup="dialog"
          onClick={() => openPalette()}
          onInput={(event) => openPalette((event.target as HTMLInputElement).value)}
        />
        <span class="key">{words.searchKeys}</span>
      </form>
    </search>
  )
}
