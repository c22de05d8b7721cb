// Frame of every screen: navigation, search, the signed-in user, and the theme.
import { useEffect, useState } from 'preact/hooks'
import { words } from '../words.ts'
import { ErrorBoundary } from './boundary.tsx'
import { CurrentScreen } from './current-screen.tsx'
import { Help } from './help.tsx'
import { startKeys } from './keys.ts'
import { paths } from './paths.ts'
import { go, here, route } from './route.ts'
import { me } from './session.ts'
import { isUtc, type Theme, theme } from './settings.ts'

export function Shell() {
  const [isHelp, setHelp] = useState(false)
  useEffect(() => startKeys(() => setHelp(true)), [])
  const { head } = route.value
  return (
    <>
      <a class="skip" href="#main">
        {words.skip}
      </a>
      {me.isOperator && (
        <aside class="operator" aria-label={words.operatorTitle}>
          {words.operatorBanner}
        </aside>
      )}
      <header>
        <a class="brand" href={paths.start}>
          {words.product}
        </a>
        <Search />
        <nav aria-label={words.main}>
          {navigation.map(({ label, href, heads }) => (
            <a key={href} href={href} aria-current={heads.includes(head) ? 'page' : undefined}>
              {label}
            </a>
          ))}
        </nav>
        <Choices showHelp={() => setHelp(true)} />
      </header>
      <main id="main" tabIndex={-1}>
        <ErrorBoundary key={here().pathname}>
          <CurrentScreen />
        </ErrorBoundary>
      </main>
      <footer>
        <span>{words.footer(me.version)}</span> <a href="/docs">{words.reference}</a>
      </footer>
      {isHelp && <Help onClose={() => setHelp(false)} />}
    </>
  )
}

const navigation = [
  { label: words.start, href: paths.start, heads: ['', 'search'] },
  { label: words.organizations, href: paths.organizations, heads: ['g', 'r'] },
  { label: words.advisories, href: paths.advisories, heads: ['advisories'] },
  { label: words.libraries, href: paths.libraries, heads: ['libraries'] },
]

function Search() {
  const search = (event: SubmitEvent) => {
    event.preventDefault()
    const q = String(new FormData(event.target as HTMLFormElement).get('q') ?? '').trim()
    if (q !== '') go(paths.search(q))
  }
  const { head, query } = route.value
  const q = head === 'search' ? (query.get('q') ?? '') : ''
  return (
    <search>
      <form onSubmit={search}>
        <label class="unseen" for="q">
          {words.searchLabel}
        </label>
        <input
          id="q"
          key={q}
          name="q"
          type="search"
          defaultValue={q}
          placeholder={words.searchHint}
          autocomplete="off"
        />
        <button type="submit">{words.search}</button>
      </form>
    </search>
  )
}

function Choices({ showHelp }: { showHelp: () => void }) {
  const choose = (event: Event) => {
    theme.value = (event.target as HTMLSelectElement).value as Theme
  }
  return (
    <div class="choices">
      <a href={paths.account} aria-current={route.value.head === 'account' ? 'page' : undefined}>
        <bdi>{me.name}</bdi>
      </a>
      <button type="button" class="small" onClick={() => (isUtc.value = !isUtc.value)}>
        {isUtc.value ? words.showLocal : words.showUtc}
      </button>
      <label>
        <span class="unseen">{words.theme}</span>
        <select value={theme.value} onChange={choose}>
          {Object.entries(words.themes).map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <button type="button" class="small" title={words.helpTitle} aria-label={words.helpTitle} onClick={showHelp}>
        {words.help}
      </button>
    </div>
  )
}
