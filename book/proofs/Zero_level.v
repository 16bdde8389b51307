(* The zero level of HSIC and GDP for finite Z and S, with kernels that are
   characteristic each on its own space. Needs Finite and Theorem_4_5. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Proofs Require Import Finite Theorem_4_5.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Zero_level.
Variable R : realFieldType.

Lemma characteristic_mass0 (T : finType) (l : T -> T -> R) (w : T -> R) :
  characteristic l -> \sum_x w x = 0 -> quad l w = 0 -> forall x, w x = 0.
Proof.
move=> cl w0 q0.
pose pos x := if 0 <= w x then w x else 0; pose neg x := if 0 <= w x then 0 else - w x.
have e x : w x = pos x - neg x by rewrite /pos /neg; case: ifP => _; rewrite ?subr0 // sub0r opprK.
have p0 x : 0 <= pos x by rewrite /pos; case: ifP.
have n0 x : 0 <= neg x by rewrite /neg; case: ifPn => //; rewrite -ltNge oppr_ge0 => /ltW.
set m := \sum_x pos x.
have mE : \sum_x neg x = m.
  have : m - \sum_x neg x = 0 by rewrite /m -sumrB -[RHS]w0; apply: eq_bigr => x _; rewrite -e.
  by move/eqP; rewrite subr_eq0 => /eqP.
have zero (f : T -> R) : (forall x, 0 <= f x) -> \sum_x f x = 0 -> forall x, f x = 0.
  move=> f0 /eqP; rewrite psumr_eq0 => [/allP h x|y _]; last exact: f0.
  by apply/eqP; exact: (h x (mem_index_enum x)).
have [mz|mn] := eqVneq m 0.
  by move=> x; rewrite e (zero _ p0 mz) (zero _ n0) ?subrr // mE.
have mp : 0 <= m^-1 by rewrite invr_ge0; apply: sumr_ge0 => x _; exact: p0.
have lP : law (fun x => m^-1 * pos x).
  by split=> [x|]; [rewrite mulr_ge0 | rewrite -mulr_sumr mulVf].
have lQ : law (fun x => m^-1 * neg x).
  by split=> [x|]; [rewrite mulr_ge0 | rewrite -mulr_sumr mE mulVf].
have z : mmd2 l (fun x => m^-1 * pos x) (fun x => m^-1 * neg x) = 0.
  rewrite /mmd2 (_ : quad l _ = quad l (fun x => m^-1 * w x)); first by rewrite quadZ q0 mulr0.
  by apply: eq_quad => x; rewrite e mulrBr.
move=> x; have := cl _ _ lP lQ z x => /(mulfI (invr_neq0 mn)) h.
by rewrite e h subrr.
Qed.

(* begin Proposition 3.1, HSIC *)
Theorem hsic_zero (Z S : finType) (p : Z -> S -> R) (k : Z -> Z -> R) (l : S -> S -> R) :
  joint_law p -> kernel k -> characteristic k -> kernel l -> characteristic l ->
  (hsic k l p = 0 <-> independent p).
(* end Proposition 3.1, HSIC *)
Proof.
move=> p_law kk ck kl cl; split; last first.
  move=> ind; rewrite /hsic /mmd2 /quad /form big1 // => a _; rewrite big1 // => b _.
  by rewrite /joint /product ind subrr !mul0r.
have [r [d [v [d0 ek]]]] := kernel_squares kk.
move=> h z s; rewrite (joint_conditional p_law).
have [->|s0] := eqVneq (marginal_s p s) 0; first by rewrite mul0r mulr0.
suff -> : conditional p s z = marginal_z p z by rewrite mulrC.
apply: (ck _ _ (conditional_law p_law s0) (marginal_z_law p_law)).
rewrite /mmd2 /quad (eq_kernel_form _ _ ek) form_squares big1 // => j _.
have [->|dj] := eqVneq (d j) 0; first by rewrite mul0r.
move: h; rewrite (hsic_squares p_law _ ek) => /eqP; rewrite psumr_eq0; last first.
  by move=> i _; apply: mulr_ge0 => //; exact: (proj2 kl).
move=> /allP /(_ j (mem_index_enum _)) /=; rewrite mulf_eq0 (negbTE dj) /= => /eqP q0.
have mass : \sum_t marginal_s p t * head_gap p (v j) t = 0.
  rewrite /head_gap; under eq_bigr do rewrite mulr_sumr.
  rewrite exchange_big big1 // => x _ /=.
  transitivity (v j x * \sum_t marginal_s p t * deviation p t x).
    by rewrite mulr_sumr; apply: eq_bigr => t _; ring.
  by rewrite (mean_deviation p_law) mulr0.
have /eqP := characteristic_mass0 cl mass q0 s.
by rewrite mulf_eq0 (negbTE s0) /= head_gapC => /eqP ->; rewrite !mul0r mulr0.
Qed.

(* begin Proposition 3.1, GDP *)
Theorem gdp_zero (Z S : finType) (p : Z -> S -> R) (k : Z -> Z -> R) :
  joint_law p -> kernel k -> characteristic k ->
  ((forall f b, ball k b f -> gdp p f = 0) <-> independent p).
(* end Proposition 3.1, GDP *)
Proof.
move=> p_law kk ck; split=> [h z s|ind f b _]; last first.
  rewrite /gdp big1 // => s _; have [->|s0] := eqVneq (marginal_s p s) 0; first by rewrite mul0r.
  rewrite /head_gap big1 ?normr0 ?mulr0 // => z _.
  by rewrite /deviation /conditional ind mulfK // subrr mulr0.
rewrite (joint_conditional p_law).
have [->|s0] := eqVneq (marginal_s p s) 0; first by rewrite mul0r mulr0.
suff -> : conditional p s z = marginal_z p z by rewrite mulrC.
apply: (ck _ _ (conditional_law p_law s0) (marginal_z_law p_law)).
have := h _ _ (ball_span (deviation p s) kk) => /eqP; rewrite /gdp psumr_eq0; last first.
  by move=> t _; rewrite mulr_ge0 ?marginal_s_ge0.
move=> /allP /(_ s (mem_index_enum _)) /=; rewrite mulf_eq0 (negbTE s0) normr_eq0 /= => /eqP.
rewrite /head_gap => g0; rewrite /mmd2 -[RHS]g0 /quad /form -/(deviation p s).
apply: eq_bigr => x _; rewrite mulr_suml; apply: eq_bigr => y _.
by rewrite -!/(deviation p s _); ring.
Qed.
End Zero_level.
