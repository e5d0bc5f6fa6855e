/** A small column chart. */
export function Spark({ values, says }: { values: number[]; says: string }) {
  const most = Math.max(1, ...values);
  const wide = 100 / Math.max(1, values.length);
  return (
    <svg className="spark" viewBox="0 0 100 20" preserveAspectRatio="none" role="img" aria-label={says}>
      {values.map((value, place) => {
        const height = value === 0 ? 0.6 : Math.max(1.5, (value / most) * 20);
        return <rect key={place} x={place * wide} width={wide * 0.72} y={20 - height} height={height} />;
      })}
    </svg>
  );
}
