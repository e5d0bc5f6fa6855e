/** The frame around every screen: where one is, whose memory it is, and who is signed in. */
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { useRights } from '../api/me';
import { useWords } from '../words';
import { SCREENS, type Scope, type Screen, scopePath, WHOLE, type Whole } from './address';
import { Icon } from './icons';

type Switches = { onLanguage: () => void; onTheme: () => void; onSignOut: () => void };
type Props = Switches & { scope: Scope | null; screen: Screen | Whole; children: ReactNode };

export function Frame({ scope, screen, children, ...tools }: Props) {
  const words = useWords();
  return (
    <div className="frame">
      <a className="skip" href="#content">
        {words.frame.skip}
      </a>
      <aside className="side">
        <Link href="/" className="brand">
          <Mark />
          Recollect
        </Link>
        <Steps scope={scope} screen={screen} />
        <Tools {...tools} />
      </aside>
      <main id="content" tabIndex={-1}>
        {children}
      </main>
    </div>
  );
}

function Steps({ scope, screen }: Pick<Props, 'scope' | 'screen'>) {
  const words = useWords();
  const { bound, reads, administers } = useRights();
  return (
    <nav aria-label={words.frame.screens}>
      {!bound &&
        WHOLE.map((name) =>
          (name === 'keys' ? administers : reads) ? (
            <Link
              key={name}
              href={name === 'home' ? '/' : `/${name}`}
              className="step"
              aria-current={screen === name ? 'page' : undefined}
            >
              <Icon name={name} />
              {words.frame[name]}
            </Link>
          ) : null,
        )}
      {scope && (
        <div className="scope">
          <small>{words.frame.scope}</small>
          <b>
            <bdi>{scope.agent}</bdi>
          </b>
          <bdi>{scope.user || words.frame.noUser}</bdi>
        </div>
      )}
      {scope &&
        reads &&
        SCREENS.map((name) => (
          <Link
            key={name}
            href={scopePath(scope, name)}
            className="step"
            aria-current={name === screen ? 'page' : undefined}
          >
            <Icon name={name} />
            {words.frame[name]}
          </Link>
        ))}
    </nav>
  );
}

function Tools({ onLanguage, onTheme, onSignOut }: Switches) {
  const words = useWords();
  const { me, writes, bound } = useRights();
  return (
    <footer>
      <p className="who">
        <bdi>{me.name}</bdi>
        {!writes && <span className="badge">{words.frame.readOnly}</span>}
        {bound && <span className="badge">{words.frame.bound}</span>}
      </p>
      <div className="tools">
        <button type="button" className="quiet" onClick={onLanguage} lang={words.language.code}>
          <Icon name="language" />
          {words.language.other}
        </button>
        <button type="button" className="quiet" onClick={onTheme}>
          <Icon name="theme" />
          {words.frame.theme}
        </button>
        <button type="button" className="quiet" onClick={onSignOut}>
          <Icon name="out" />
          {words.frame.signOut}
        </button>
      </div>
    </footer>
  );
}

function Mark() {
  return (
    <svg className="mark" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" />
      <path d="M8 22a8 8 0 0 1 16 0M12 22a4 4 0 0 1 8 0" />
      <circle cx="16" cy="22" r="1.7" />
      <circle cx="16" cy="9" r="1.7" />
    </svg>
  );
}

/** The head of a screen: its name, and the question that it answers. */
export function Head({ title, says, children }: { title: ReactNode; says: string; children?: ReactNode }) {
  return (
    <header className="head">
      <div>
        <h1>{title}</h1>
        <p>{says}</p>
      </div>
      {children}
    </header>
  );
}
