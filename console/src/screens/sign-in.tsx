/** One key opens the door; the page forgets it at once. */
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { Problem, signIn } from '../api/client';
import { useWords } from '../words';

type Props = { onDone: () => void; onLanguage: () => void; wrongLink: boolean };

export function SignIn({ onDone, onLanguage, wrongLink }: Props) {
  const words = useWords();
  const [key, setKey] = useState('');
  // A wrong key is no session that ended: it is told here.
  const enter = useMutation({ mutationFn: signIn, onSuccess: onDone, onError: () => undefined });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    enter.mutate(key.trim());
    setKey('');
  };
  const wrong = enter.error instanceof Problem && enter.error.status === 401;
  return (
    <main className="sign-in">
      <form onSubmit={submit}>
        <h1>Recollect</h1>
        <p className="soft">{words.signIn.says}</p>
        <label className="field">
          <span>{words.signIn.key}</span>
          <input
            type="password"
            autoComplete="current-password"
            required
            // biome-ignore lint/a11y/noAutofocus: it is the only thing to do on this page
            autoFocus
            value={key}
            placeholder="rec_…"
            onChange={(event) => setKey(event.target.value)}
          />
        </label>
        {wrongLink && !enter.error && (
          <p role="alert" className="notice failed">
            {words.signIn.wrongLink}
          </p>
        )}
        {enter.error && (
          <p role="alert" className="notice failed">
            {wrong ? words.signIn.wrong : enter.error.message}
          </p>
        )}
        <button type="submit" className="primary" disabled={enter.isPending}>
          {words.signIn.enter}
        </button>
        <p className="soft small">{words.signIn.hint}</p>
        <button type="button" className="quiet" onClick={onLanguage} lang={words.language.code}>
          {words.language.other}
        </button>
      </form>
    </main>
  );
}
