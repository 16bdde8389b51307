(* Bernstein's inequality for independent draws from a law on finitely many values, and
   a confidence bound for GDP that uses the variance of the scores.

   - If - f <= M and the mean of f^2 is at most v, then with probability at least
     1 - exp(- level) the mean of f is at most its mean over the sample
     + sqrt(2 v level / n) + M level / (3 n).
   - If the scores have values in [0,1] and a variance of at most v / 4, then with
     probability at least 1 - 5 exp(- level)
     GDP <= GDP_n + sqrt(2 v level / n) + 5 level / (3 n).
     The five events are Bernstein's inequality for the covariance of the scores with the
     signs of the true covariances, and Hoeffding's inequality for two means.
     v is known here; estimating it from the sample is not part of this file.

   As in McDiarmid.v, e is any exponential function over an archimedean ordered field, and
   no axiom is used. The bounds exp(x) <= (6 + 4x + x^2) / (6 - 2x) for 0 <= x < 3 and
   exp(- x) <= 1 - x + x^2 / 2 for 0 <= x follow from many small steps of x. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Proofs Require Import Finite Sample Theorem_4_5 Bounded_difference Draws Unbiased McDiarmid.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Exponential.
Variables (R : realFieldType) (e : R -> R).
Hypothesis e_exp : exponential e.
Hypothesis arch : archimedean R.

Let eD x y : e (x + y) = e x * e y. Proof. by case: e_exp. Qed.
Let tangent x : 1 + x <= e x. Proof. by case: e_exp. Qed.
Let e_gt0 x : 0 < e x. Proof. exact: exponential_gt0. Qed.

(* A bound with a factor that tends to one is a bound without it. *)
Lemma limit (a b M c : R) : 0 < a -> 0 <= M -> 0 <= c ->
  (forall N : nat, 0 < N%:R :> R -> c <= N%:R -> a <= b * e (M / N%:R)) -> a <= b.
Proof.
move=> a0 M0 c0 h; rewrite leNgt; apply/negP => ba.
pose r := 1 - b / a; have r0 : 0 < r by rewrite subr_gt0 ltr_pdivr_mulr // mul1r.
have [N bound] := arch (M / r + c + 1).
have Mr0 : 0 <= M / r by rewrite divr_ge0 // ltW.
have N0 : (0 : R) < N%:R by apply: lt_le_trans bound; rewrite ltr_paddl ?ltr01 // addr_ge0.
have cN : c <= N%:R.
  by apply: le_trans bound; rewrite -addrA [c + 1]addrC addrA ler_addr addr_ge0 ?ler01.
have NM : M / N%:R < r.
  rewrite ltr_pdivr_mulr // mulrC -ltr_pdivr_mulr //; apply: lt_le_trans bound.
  by rewrite -addrA ltr_addl ltr_paddl ?ltr01.
have := ler_wpmul2r (ltW (e_gt0 (- (M / N%:R)))) (h N N0 cN).
rewrite -mulrA (exponentialN e_exp) mulr1 => h1.
have := le_trans (ler_wpmul2l (ltW a0) (tangent (- (M / N%:R)))) h1.
rewrite mulrC -ler_pdivl_mulr // => h2.
have : r <= M / N%:R by rewrite /r ler_subl_addr -ler_subl_addl.
by rewrite leNgt NM.
Qed.

(* One small step, up (s = 1) or down (s = -1). *)
Lemma small_step (s h : R) : s = 1 \/ s = -1 -> 0 <= h <= 2%:R^-1 ->
  0 <= 1 + s * h /\ e (s * h) <= (1 + s * h) * e (2%:R * h ^+ 2).
Proof.
move=> s1 /andP[h0 h2].
have hlt : h < 1 by apply: le_lt_trans h2 _; rewrite invf_lt1 ?ltr0n // ltr1n.
have up : 0 < 1 - s * h.
  case: s1 => ->; first by rewrite mul1r subr_gt0.
  by rewrite mulN1r opprK ltr_paddr ?ltr01.
have lo : 0 <= 1 + s * h.
  case: s1 => ->; first by rewrite mul1r addr_ge0 ?ler01.
  by rewrite mulN1r subr_ge0 ltW.
split=> //.
have s2 : s * s = 1 by case: s1 => ->; rewrite ?mulrNN mulr1.
have below : e (s * h) * (1 - s * h) <= 1.
  rewrite -[X in _ <= X](exponentialN e_exp (s * h)); apply: ler_wpmul2l; first exact: ltW.
  exact: tangent.
have prod : 1 <= (1 + s * h) * (1 + 2%:R * h ^+ 2) * (1 - s * h).
  rewrite -subr_ge0 (_ : _ - 1 = h ^+ 2 * (1 - 2%:R * h ^+ 2)); last first.
    rewrite (_ : _ - 1 = (1 - (s * s) * h ^+ 2) * (1 + 2%:R * h ^+ 2) - 1); last by ring.
    by rewrite s2; ring.
  rewrite mulr_ge0 ?sqr_ge0 // subr_ge0 expr2 mulrA.
  apply: (@le_trans _ _ (1 * 1)); last by rewrite mulr1.
  apply: ler_pmul => //; first by rewrite mulr_ge0 ?ler0n.
    by rewrite -ler_pdivl_mull ?ltr0n // mulr1.
  exact: ltW.
have := le_trans below prod; rewrite ler_pmul2r // => h3; apply: le_trans h3 _.
by apply: ler_wpmul2l => //; exact: tangent.
Qed.

(* A function that grows in every step at least by the factor 1 + s h is above exp(s x). *)
Lemma above (P : R -> R) (s x : R) : s = 1 \/ s = -1 -> 0 <= x -> P 0 = 1 ->
  (forall y h, 0 <= y -> 0 <= h -> y + h <= x -> P y * (1 + s * h) <= P (y + h)) ->
  e (s * x) <= P x.
Proof.
move=> s1 x0 P0 grow; apply: (limit (M := 2%:R * x ^+ 2) (c := 2%:R * x)) => //.
- by rewrite mulr_ge0 ?ler0n ?sqr_ge0.
- by rewrite mulr_ge0 ?ler0n.
move=> N N0 xN; pose h := x / N%:R; have Nn : N%:R != 0 :> R by rewrite gt_eqF.
have h0 : 0 <= h by rewrite divr_ge0 ?ler0n.
have h2 : 0 <= h <= 2%:R^-1 by rewrite h0 /= ler_pdivr_mulr // ler_pdivl_mull ?ltr0n.
have [lo step] := small_step s1 h2.
have main k : (k <= N)%N -> e (s * (k%:R * h)) <= P (k%:R * h) * e (k%:R * (2%:R * h ^+ 2)).
  elim: k => [_|k IH kN]; first by rewrite !mul0r mulr0 (exponential0 e_exp) P0 mulr1.
  have {}IH := IH (ltnW kN); set E := e (k%:R * _) in IH.
  have kh0 : 0 <= k%:R * h by rewrite mulr_ge0 ?ler0n.
  have khN : k%:R * h + h <= x.
    rewrite (_ : _ + h = x * (k.+1%:R / N%:R)); last by rewrite /h mulrSr; field.
    by rewrite ler_pimulr // ler_pdivr_mulr // mul1r ler_nat.
  rewrite mulrSr mulrDl mul1r mulrDr eD.
  apply: le_trans (ler_pmul (ltW (e_gt0 _)) (ltW (e_gt0 _)) IH step) _.
  rewrite [(k%:R + 1) * _]mulrDl mul1r eD -/E.
  rewrite (_ : _ * _ * _ = P (k%:R * h) * (1 + s * h) * (E * e (2%:R * h ^+ 2))); last by ring.
  apply: ler_wpmul2r; last exact: grow.
  by apply: mulr_ge0; apply: ltW; exact: e_gt0.
have := main N (leqnn N).
rewrite (_ : N%:R * h = x); last by rewrite /h; field.
by rewrite (_ : N%:R * (2%:R * h ^+ 2) = 2%:R * x ^+ 2 / N%:R) //; rewrite /h; field.
Qed.

Lemma exp_neg (y : R) : 0 <= y -> e (- y) <= 1 - y + y ^+ 2 / 2%:R.
Proof.
move=> y0; rewrite -[X in e X]mulN1r.
apply: (@above (fun y => 1 - y + y ^+ 2 / 2%:R)) => //; first by right.
  by rewrite expr0n /= mul0r subr0 addr0.
move=> z h z0 h0 _; rewrite -subr_ge0 (_ : _ - _ = (h ^+ 2 + h * z ^+ 2) / 2%:R); last by field.
by rewrite divr_ge0 ?ler0n // addr_ge0 ?sqr_ge0 // mulr_ge0 ?sqr_ge0.
Qed.

Lemma exp_pade (x : R) : 0 <= x < 3%:R ->
  e x <= (6%:R + 4%:R * x + x ^+ 2) / (6%:R - 2%:R * x).
Proof.
move=> /andP[x0 x3]; rewrite -[X in e X]mul1r.
have D0 y : y <= x -> 0 < 6%:R - 2%:R * y :> R.
  move=> yx; rewrite (_ : 6%:R - _ = 2%:R * (3%:R - y)); last by ring.
  by rewrite mulr_gt0 ?ltr0n // subr_gt0 (le_lt_trans yx).
apply: (@above (fun y => (6%:R + 4%:R * y + y ^+ 2) / (6%:R - 2%:R * y))) => //.
- by left.
- by rewrite !mulr0 expr0n /= !addr0 subr0 divff // pnatr_eq0.
move=> y h y0 h0 yhx.
have d1 : 0 < 6%:R - 2%:R * y by apply: D0; apply: le_trans yhx; rewrite ler_addl.
have d2 := D0 _ yhx.
rewrite -subr_ge0 (_ : _ - _ = (h * (2%:R * y ^+ 3)
    + h ^+ 2 * (6%:R - 2%:R * y + 2%:R * (6%:R + 4%:R * y + y ^+ 2)))
    / ((6%:R - 2%:R * y) * (6%:R - 2%:R * (y + h)))); last by field; rewrite !gt_eqF.
apply: divr_ge0; last by rewrite mulr_ge0 ?ltW.
rewrite addr_ge0 ?mulr_ge0 ?sqr_ge0 ?exprn_ge0 ?ler0n // addr_ge0 ?(ltW d1) //.
by rewrite mulr_ge0 ?ler0n // !addr_ge0 ?sqr_ge0 ?mulr_ge0 ?ler0n.
Qed.

Lemma exp_quadratic (x a : R) : x <= a -> 0 <= a < 3%:R ->
  e x <= 1 + x + x ^+ 2 / (2%:R * (1 - a / 3%:R)).
Proof.
move=> xa /andP[a0 a3].
have three : (0 : R) < 3%:R by rewrite ltr0n.
have A0 : 0 < 1 - a / 3%:R by rewrite subr_gt0 ltr_pdivr_mulr // mul1r.
have le2 b : 0 < b -> 1 - a / 3%:R <= b ->
    x ^+ 2 / (2%:R * b) <= x ^+ 2 / (2%:R * (1 - a / 3%:R)).
  move=> b0 ab; apply: ler_wpmul2l; first exact: sqr_ge0.
  by rewrite lef_pinv ?posrE ?mulr_gt0 ?ltr0n // ler_pmul2l ?ltr0n.
case: (leP 0 x) => [x0|/ltW x0].
  have x3 : x < 3%:R by apply: le_lt_trans a3.
  have X0 : 0 < 1 - x / 3%:R by rewrite subr_gt0 ltr_pdivr_mulr // mul1r.
  have x03 : 0 <= x < 3%:R by rewrite x0.
  apply: le_trans (exp_pade x03) _.
  have D0 : 0 < 6%:R - 2%:R * x :> R.
    rewrite (_ : 6%:R - _ = 2%:R * (3%:R - x)); last by ring.
    by rewrite mulr_gt0 ?ltr0n // subr_gt0.
  have T0 : 0 < 3%:R - x :> R by rewrite subr_gt0.
  rewrite (_ : _ / _ = 1 + x + x ^+ 2 / (2%:R * (1 - x / 3%:R))); last first.
    by field; rewrite !gt_eqF.
  by rewrite ler_add2l; apply: le2 => //; rewrite ler_add2l ler_opp2 ler_pmul2r ?invr_gt0.
have y0 : 0 <= - x by rewrite oppr_ge0.
have := exp_neg y0; rewrite opprK sqrrN => h; apply: le_trans h _.
rewrite ler_add2l -[X in X / 2%:R]mulr1 -[X in _ / X](mulr1 2%:R) mulr1.
by apply: le2; rewrite ?ltr01 // ger_addl oppr_le0 divr_ge0 ?ler0n.
Qed.

Section Draws.
Variables (T : finType) (mu f : T -> R) (M v : R).
Hypothesis mu_law : law mu.
Hypothesis M_ge0 : 0 <= M.
Hypothesis low : forall x, - f x <= M.
Hypothesis square : mean mu (fun x => f x ^+ 2) <= v.

Lemma bernstein_mgf (lam : R) : 0 <= lam -> lam * M < 3%:R ->
  \sum_x mu x * e (- (lam * f x))
  <= e (- (lam * mean mu f) + lam ^+ 2 * v / (2%:R * (1 - lam * M / 3%:R))).
Proof.
move=> lam0 lamM; have [mu0 mu1] := mu_law; set d := 2%:R * _.
have d0 : 0 < d by rewrite mulr_gt0 ?ltr0n // subr_gt0 ltr_pdivr_mulr ?ltr0n // mul1r.
have lM : 0 <= lam * M < 3%:R by rewrite mulr_ge0.
apply: le_trans (tangent _).
apply: (@le_trans _ _ (\sum_x mu x * (1 - lam * f x + lam ^+ 2 / d * f x ^+ 2))).
  apply: ler_sum => x _; apply: ler_wpmul2l => //.
  have lx : - (lam * f x) <= lam * M by rewrite -mulrN ler_wpmul2l.
  have := exp_quadratic lx lM.
  by rewrite -/d sqrrN exprMn mulrAC.
have -> : \sum_x mu x * (1 - lam * f x + lam ^+ 2 / d * f x ^+ 2)
          = 1 - lam * mean mu f + lam ^+ 2 / d * mean mu (fun x => f x ^+ 2).
  rewrite /mean -[X in _ = X - _ + _]mu1 !mulr_sumr -sumrB -big_split /=.
  by apply: eq_bigr => x _; ring.
rewrite addrA ler_add2l [X in _ <= X]mulrAC; apply: ler_wpmul2l => //.
by rewrite divr_ge0 ?sqr_ge0 // ltW.
Qed.

Lemma bernstein_tail n (lam t : R) : 0 <= lam -> lam * M < 3%:R ->
  prob mu (fun w : {ffun 'I_n -> T} => t <= n%:R * mean mu f - \sum_i f (w i)) * e (lam * t)
  <= e (n%:R * (lam ^+ 2 * v / (2%:R * (1 - lam * M / 3%:R)))).
Proof.
move=> lam0 lamM; set q := _ / _; set m := mean mu f.
pose G (w : {ffun 'I_n -> T}) := e (lam * (n%:R * m)) * \prod_i e (- (lam * f (w i))).
have GE w : G w = e (lam * (n%:R * m - \sum_i f (w i))).
  rewrite /G -(big_morph e eD (exponential0 e_exp)) -eD; congr (e _).
  by rewrite sumrN -mulr_sumr mulrBr.
apply: (@le_trans _ _ (expect mu G)).
  rewrite /prob mulr_suml big_mkcond; apply: ler_sum => w _; rewrite GE.
  have w0 := weight_ge0 mu_law w.
  case: ifP => [le|_]; last by apply: mulr_ge0 => //; apply: ltW; exact: e_gt0.
  by apply: ler_wpmul2l => //; apply: exponential_le => //; rewrite ler_wpmul2l.
rewrite /G expectZ (expect_prod mu (fun _ x => e (- (lam * f x)))) prodr_const card_ord.
have -> : e (n%:R * q) = e (lam * (n%:R * m)) * e (- (lam * m) + q) ^+ n.
  by rewrite -(exponentialX e_exp) -eD; congr (e _); ring.
apply: ler_wpmul2l; first exact: ltW.
apply: ler_expn2r; last exact: bernstein_mgf.
  by rewrite nnegrE; apply: sumr_ge0 => x _; rewrite mulr_ge0 ?(ltW (e_gt0 _)) //; case: mu_law.
by rewrite nnegrE ltW.
Qed.

End Draws.
End Exponential.

(* begin Bernstein's inequality *)
Theorem bernstein (R : rcfType) (e : R -> R) (T : finType) (mu f : T -> R) n (M v level : R) :
  exponential e -> archimedean R -> law mu -> (0 < n)%N -> 0 <= M -> 0 < v -> 0 <= level ->
  (forall x, - f x <= M) -> mean mu (fun x => f x ^+ 2) <= v ->
  1 - e (- level) <= prob mu (fun w : {ffun 'I_n -> T} =>
    mean mu f <= n%:R^-1 * (\sum_i f (w i))
                 + Num.sqrt (2%:R * v * level / n%:R) + M * level / (3%:R * n%:R)).
(* end Bernstein's inequality *)
Proof.
move=> e_exp arch mu_law n0 M0 v0 level0 low square.
have n1 : (0 : R) < n%:R by rewrite ltr0n.
pose r := Num.sqrt (2%:R * level / (n%:R * v)).
have r0 : 0 <= r by exact: sqrtr_ge0.
have r2 : r ^+ 2 = 2%:R * level / (n%:R * v).
  by rewrite sqr_sqrtr // divr_ge0 ?mulr_ge0 ?ler0n // ltW.
have levelE : level = n%:R * v * r ^+ 2 / 2%:R by rewrite r2; field; rewrite !gt_eqF.
have rootE : Num.sqrt (2%:R * v * level / n%:R) = v * r.
  rewrite (_ : _ / _ = (v * r) ^+ 2); last by rewrite exprMn r2; field; rewrite !gt_eqF.
  by rewrite sqrtr_sqr ger0_norm // mulr_ge0 // ltW.
pose c := M / 3%:R; have c0 : 0 <= c by rewrite divr_ge0 ?ler0n.
have k0 : 0 < 1 + c * r by rewrite ltr_paddr ?ltr01 // mulr_ge0.
have k3 : 3%:R + M * r != 0.
  by rewrite gt_eqF // ltr_paddr ?ltr0n // mulr_ge0.
pose lam := r / (1 + c * r).
have lam0 : 0 <= lam by rewrite divr_ge0 // ltW.
have lamM : lam * M < 3%:R.
  rewrite /lam mulrAC ltr_pdivr_mulr // mulrDr mulr1 /c.
  by rewrite (_ : 3%:R * _ = r * M) ?ltr_addr ?ltr0n //; field.
pose t := n%:R * (v * r + c * (v * r ^+ 2 / 2%:R)).
have tail := bernstein_tail e_exp arch mu_law M0 low square n t lam0 lamM.
rewrite prob_not // ler_add2l ler_opp2.
have E0 := exponential_gt0 e_exp (lam * t).
rewrite -(ler_pmul2r E0).
have e2 : e (- level) * e (lam * t)
          = e (n%:R * (lam ^+ 2 * v / (2%:R * (1 - lam * M / 3%:R)))).
  case: (e_exp) => eD _; rewrite -eD; congr (e _).
  rewrite levelE /t /lam /c; field; rewrite k3 /= [r * M]mulrC addrK; by rewrite pnatr_eq0.
rewrite e2; apply: le_trans tail; apply: ler_wpmul2r; first exact: ltW.
apply: prob_sub => // w; rewrite -ltNge rootE => /ltW far.
rewrite ler_subr_addl.
have := ler_wpmul2l (ltW n1) far.
rewrite (_ : n%:R * (_ + _ + _) = \sum_i f (w i) + t) //.
by rewrite /t /c [in M * level]levelE; field; rewrite gt_eqF.
Qed.

Lemma prob_both (R : realFieldType) (T : finType) (mu : T -> R) n (a b : R)
    (A B : pred {ffun 'I_n -> T}) :
  law mu -> 1 - a <= prob mu A -> 1 - b <= prob mu B ->
  1 - (a + b) <= prob mu (fun w => A w && B w).
Proof.
move=> mu_law; rewrite (prob_not mu_law A) (prob_not mu_law B) !ler_add2l !ler_opp2 => hA hB.
rewrite [X in _ <= X](prob_not mu_law) ler_add2l ler_opp2; apply: le_trans (ler_add hA hB).
rewrite /prob big_mkcond [X in X + _]big_mkcond [X in _ + X]big_mkcond -big_split.
apply: ler_sum => w _ /=; have w0 := weight_ge0 mu_law w.
by case: (A w); case: (B w); rewrite /= ?addr0 ?add0r // ler_addl.
Qed.

Lemma from_mean (R : realFieldType) (T : finType) (mu g : T -> R) (c : R) x :
  law mu -> (forall x y, g x - g y <= c) -> `|g x - mean mu g| <= c.
Proof.
move=> [mu0 mu1] gc.
have -> : g x - mean mu g = \sum_y mu y * (g x - g y).
  by under eq_bigr do rewrite mulrBr; rewrite sumrB -mulr_suml mu1 mul1r.
apply: le_trans (ler_norm_sum _ _ _) _.
rewrite -[X in _ <= X]mul1r -mu1 mulr_suml; apply: ler_sum => y _.
by rewrite normrM (ger0_norm (mu0 y)) ler_wpmul2l // ler_norml ler_oppl opprB !gc.
Qed.

(* Hoeffding's inequality for a mean. *)
Lemma mean_close (R : rcfType) (e : R -> R) (T : finType) (mu g : T -> R) n (c level : R) :
  exponential e -> archimedean R -> law mu -> (0 < n)%N -> 0 < c -> 0 <= level ->
  (forall x y, g x - g y <= c) ->
  1 - (e (- level) + e (- level)) <= prob mu (fun w : {ffun 'I_n -> T} =>
    `|n%:R^-1 * (\sum_i g (w i)) - mean mu g| <= c * Num.sqrt (level / (2%:R * n%:R))).
Proof.
move=> e_exp arch mu_law n0 c0 level0; set t := _ * Num.sqrt _.
have n1 : (0 : R) < n%:R by rewrite ltr0n.
have one (h : T -> R) : (forall x y, h x - h y <= c) ->
    1 - e (- level) <= prob mu (fun w : {ffun 'I_n -> T} =>
      mean mu h <= n%:R^-1 * (\sum_i h (w i)) + t).
  move=> hc; pose F (w : {ffun 'I_n -> T}) := n%:R^-1 * \sum_i h (w i).
  have Fc : bounded_differences (c / n%:R) F.
    move=> i w w' same; rewrite /F -mulrBr -sumrB (bigD1 i) //= [X in _ + X]big1 => [|j ji].
      rewrite addr0 normrM ger0_norm ?invr_ge0 ?ler0n // mulrC ler_pmul2r ?invr_gt0 //.
      by rewrite ler_norml ler_oppl opprB !hc.
    by rewrite same ?subrr.
  have FE : expect mu F = mean mu h.
    rewrite /F expectZ expect_sum; under eq_bigr => i _ do rewrite (expect_row mu_law i h).
    by rewrite sumr_const card_ord -[mean mu h *+ n]mulr_natl mulrA mulVf ?mul1r // gt_eqF.
  have cn : 0 < c / n%:R by rewrite divr_gt0.
  have := mcdiarmid_confidence e_exp arch mu_law n0 cn level0 Fc.
  rewrite FE (_ : n%:R * _ * _ / _ = c ^+ 2 * (level / (2%:R * n%:R))); last first.
    by field; rewrite gt_eqF.
  by rewrite sqrtrM ?sqr_ge0 // sqrtr_sqr (ger0_norm (ltW c0)).
move=> gc; have gN x y : - g x - - g y <= c by rewrite opprK addrC gc.
apply: le_trans (prob_both mu_law (one g gc) (one (fun x => - g x) gN)) _.
apply: prob_sub => // w /andP[up]; rewrite sumrN mulrN.
have -> : mean mu (fun x => - g x) = - mean mu g.
  by rewrite /mean -sumrN; apply: eq_bigr => x _; rewrite mulrN.
move=> down; rewrite ler_norml; apply/andP; split.
  by rewrite ler_subr_addl ler_subl_addr.
by rewrite ler_subl_addl -ler_subl_addr -[X in _ <= X]opprK ler_oppr opprB addrC.
Qed.

Section Covariances.
Variables (R : realFieldType) (T G : finType) (mu f : T -> R).

Lemma covariance_groups (g : T -> G) (eps : G -> R) :
  \sum_s eps s * covariance mu f (fun a => (g a == s)%:R) = covariance mu f (fun a => eps (g a)).
Proof.
have E a : eps (g a) = \sum_s eps s * (g a == s)%:R.
  rewrite (bigD1 (g a)) //= eqxx mulr1 big1 ?addr0 // => s /negbTE sg.
  by rewrite eq_sym sg mulr0.
rewrite /covariance; under eq_bigr do rewrite mulrBr; rewrite sumrB /mean; congr (_ - _).
  under eq_bigr do rewrite mulr_sumr.
  rewrite exchange_big; apply: eq_bigr => a _ /=; rewrite E !mulr_sumr.
  by apply: eq_bigr => s _; rewrite mulrCA [eps s * (f a * _)]mulrCA.
under eq_bigr do rewrite mulrCA mulr_sumr.
rewrite -mulr_sumr exchange_big; congr (_ * _); apply: eq_bigr => a _ /=.
by rewrite E mulr_sumr; apply: eq_bigr => s _; rewrite mulrCA.
Qed.

Lemma covariance_shift (g : T -> R) (m nu : R) : law mu ->
  mean mu (fun a => (f a - m) * (g a - nu))
  = covariance mu f g + (mean mu f - m) * (mean mu g - nu).
Proof.
move=> [_ mu1].
have -> : mean mu (fun a => (f a - m) * (g a - nu))
          = mean mu (fun a => f a * g a) - nu * mean mu f - m * mean mu g + m * nu * \sum_a mu a.
  rewrite /mean !mulr_sumr -!sumrB -big_split; apply: eq_bigr => a _ /=; ring.
by rewrite mu1 /covariance; ring.
Qed.

End Covariances.

(* begin confidence bound, GDP with the variance *)
Theorem gdp_confidence_variance (R : rcfType) (e : R -> R) (Z S : finType) (p : Z -> S -> R)
    (f : Z -> R) n (level v : R) :
  exponential e -> archimedean R -> joint_law p -> (forall z, 0 <= f z <= 1) ->
  0 < v -> 4%:R * mean (marginal_z p) (fun z => (f z - mean (marginal_z p) f) ^+ 2) <= v ->
  (0 < n)%N -> 0 <= level ->
  1 - 5%:R * e (- level) <= prob (joint p) (fun w : {ffun 'I_n -> Z * S} =>
    gdp p f <= gdp_n (fun i => f (first w i)) (second w)
               + Num.sqrt (2%:R * v * level / n%:R) + 5%:R * level / (3%:R * n%:R)).
(* end confidence bound, GDP with the variance *)
Proof.
move=> e_exp arch p_law f01 v0 fv n0 level0; have n1 : (0 : R) < n%:R by rewrite ltr0n.
have P_law := joint_is_law p_law; set P := joint p in P_law *.
pose F (a : Z * S) := f a.1.
have [eps [eps1 epsE]] : exists eps : S -> R, (forall s, -1 <= eps s <= 1) /\
    (forall s, eps s * covariance P F (fun a => (a.2 == s)%:R)
               = `|covariance P F (fun a => (a.2 == s)%:R)|).
  pose c s := covariance P F (fun a => (a.2 == s)%:R).
  exists (fun s => if 0 <= c s then 1 else -1); split=> s.
    by case: ifP => _; rewrite lexx ?andbT /= -subr_ge0 opprK addr_ge0 ?ler01.
  rewrite -/(c s); case: leP => h; first by rewrite mul1r ger0_norm.
  by rewrite mulN1r ltr0_norm.
pose E (a : Z * S) := eps a.2; pose m := mean P F; pose nu := mean P E.
pose X a := (F a - m) * (E a - nu).
have first_mean (g : Z -> R) : mean P (fun a => g a.1) = mean (marginal_z p) g.
  by rewrite /mean sum_pair; apply: eq_bigr => z _; rewrite /P /joint /= -mulr_suml.
have eps_le s c : eps s * c <= `|c|.
  apply: le_trans (ler_norm _) _; rewrite normrM -[X in _ <= X]mul1r.
  by apply: ler_wpmul2r; rewrite ?normr_ge0 // ler_norml.
have F1 x y : F x - F y <= 1.
  have /andP[_ hx] := f01 x.1; have /andP[hy _] := f01 y.1.
  by rewrite ler_subl_addr (le_trans hx) // ler_addl.
have E2 x y : E x - E y <= 2%:R.
  have /andP[_ hx] := eps1 x.2; have /andP[hy _] := eps1 y.2.
  by rewrite -[2%:R]/(1 + 1) ler_add // ler_oppl.
have FX a : `|F a - m| <= 1 by exact: from_mean.
have EX a : `|E a - nu| <= 2%:R by exact: from_mean.
have low a : - X a <= 2%:R.
  apply: le_trans (ler_norm _) _; rewrite normrN normrM -[X in _ <= X]mul1r.
  exact: ler_pmul.
have square : mean P (fun a => X a ^+ 2) <= v.
  apply: le_trans fv; rewrite -(first_mean f) -/m -(first_mean (fun z => (f z - m) ^+ 2)).
  rewrite /mean mulr_sumr; apply: ler_sum => a _; rewrite [X in _ <= X]mulrCA.
  apply: ler_wpmul2l; first by case: P_law.
  rewrite /X exprMn mulrC; apply: ler_wpmul2r; first exact: sqr_ge0.
  rewrite -[X in X <= _]real_normK ?num_real // (_ : 4%:R = 2%:R ^+ 2 :> R); last by ring.
  by rewrite ler_sqr ?nnegrE ?ler0n.
have gdpE : gdp p f = mean P X.
  rewrite (gdp_covariance f p_law) (covariance_shift F E m nu P_law) subrr mul0r addr0.
  rewrite -(covariance_groups P F (fun a => a.2) eps); apply: eq_bigr => s _.
  by rewrite -epsE.
have low2 : (0 : R) <= 2%:R by rewrite ler0n.
have B := bernstein e_exp arch P_law n0 low2 v0 level0 low square.
have C1 := mean_close e_exp arch P_law n0 ltr01 level0 F1.
have two0 : (0 : R) < 2%:R by rewrite ltr0n.
have C2 := mean_close e_exp arch P_law n0 two0 level0 E2.
have := prob_both P_law (prob_both P_law B C1) C2.
rewrite (_ : _ + _ + (_ + _) = 5%:R * e (- level)); last by ring.
move=> h; apply: (le_trans h); apply: prob_sub => // w /andP[/andP[]].
rewrite -gdpE; set r := Num.sqrt (level / _); set q := Num.sqrt _ => hB h1 h2.
have r0 : 0 <= r by exact: sqrtr_ge0.
have r2 : r * r = level / (2%:R * n%:R).
  by rewrite -expr2 sqr_sqrtr // divr_ge0 // mulr_ge0 ?ler0n.
pose Q := joint (empirical R w); have Q_law : law Q by exact: joint_is_law (empirical_law R w n0).
have XE : n%:R^-1 * (\sum_i X (w i)) = covariance Q F E + (mean Q F - m) * (mean Q E - nu).
  by rewrite -(covariance_shift F E m nu Q_law) mean_empirical.
have cov_le : covariance Q F E <= gdp_n (fun i => f (first w i)) (second w).
  rewrite -(gdp_plug_in w f n0) (gdp_covariance f (empirical_law R w n0)).
  by rewrite -(covariance_groups Q F (fun a => a.2) eps); apply: ler_sum => s _; exact: eps_le.
have prod_le : (mean Q F - m) * (mean Q E - nu) <= level / n%:R.
  apply: le_trans (ler_norm _) _; rewrite normrM.
  apply: le_trans (ler_pmul (normr_ge0 _) (normr_ge0 _) _ _) _; rewrite ?mean_empirical.
  - exact: h1.
  - exact: h2.
  rewrite mul1r mulrCA r2 le_eqVlt; apply/orP; left; apply/eqP.
  by field; rewrite gt_eqF.
apply: (le_trans hB); rewrite XE.
have -> : 5%:R * level / (3%:R * n%:R) = level / n%:R + 2%:R * level / (3%:R * n%:R) :> R.
  by field; rewrite gt_eqF.
by rewrite addrA ler_add2r [X in _ <= X]addrAC ler_add2r ler_add.
Qed.
